"""Sinks of stream tables: databases that follow their change logs, by kind.

In come changes of a stream table between two of its versions, as Arrow batches. Out go the same rows in a database, in
one transaction with the version that they make. Door: `registry`, which lists the kinds; `sink_kind` says what one is.
"""
