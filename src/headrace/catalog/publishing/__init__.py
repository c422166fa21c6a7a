"""The publication: pointers, frontiers and versions moved in one database transaction.

In comes a `Publication`, which is plain data with its preconditions. Out goes either everything at once or an error
with nothing changed.
"""
