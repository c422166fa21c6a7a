"""Captures PostgreSQL tables, from the write-ahead log or by triggers.

In come connection options and tables. Out go snapshots and batches of whole transactions with their position, as
`headrace.sources.capture` asks for them.
"""
