"""Reads a query's text into algebra.

In come tokens; clauses are cut by Spark's lexical rules, and scalars stay the user's text. Out goes a relation, and a
refusal by name and place for what is not understood for certain. Door: `reader`.
"""
