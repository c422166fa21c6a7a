"""The cut: the versions of all sources that one refresh reads.

In come the catalog's pointers and the metadata of tables. Out go heads, versions that agree with each other, and
pinned states.
"""
