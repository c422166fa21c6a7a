"""Explains a refresh by printing the objects that would run.

In come a stream table or a query. Out goes an `Explanation`; nothing is computed or written.
"""
