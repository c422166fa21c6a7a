"""Capture by triggers that write old and new rows to change tables.

In come the tables to follow and the position landed last. Out go batches between two transaction snapshots; what is
landed is trimmed.
"""
