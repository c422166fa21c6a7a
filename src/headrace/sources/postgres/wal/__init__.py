"""Capture from the write-ahead log through a logical replication slot.

In come the slot's `pgoutput` messages. Out go whole transactions, brought down to their net changes.
"""
