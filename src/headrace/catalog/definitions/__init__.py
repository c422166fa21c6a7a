"""Stream tables' definitions and declared keys as rows of the catalog.

In come `Definition` records and keys, inside the caller's transaction. Out go records of stream tables; every change
is announced to other schedulers.
"""
