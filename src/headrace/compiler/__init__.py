"""Compiles the text of a query into a view with its maintenance programs.

In come a query, the schemas of its sources and the session's semantics. Out goes a `CompiledView`: algebra, full and
delta programs, or the refusals that say why it is not maintained. Door: `compiled_view`.
"""
