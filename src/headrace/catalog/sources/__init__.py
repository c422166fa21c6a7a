"""Database sources, their mirrors and their health as rows of the catalog.

In come options, positions and failures, inside the caller's transaction. Out go frozen records; no connection to a
source is made here.
"""
