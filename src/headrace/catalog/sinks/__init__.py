"""Sinks as the catalog keeps them.

In come what users ask for and what was written; out go frozen records. Positions here follow those of the targets.
"""
