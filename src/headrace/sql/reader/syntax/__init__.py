"""Syntax: tokens and the shape of a query.

In comes text. Out go clauses with exact places; nothing is resolved yet.
"""
