"""PostgreSQL as a sink: rows and the version that they are, in one transaction.

In come Arrow batches and versions; out go rows in a table, and a row in `sink_position` beside it. Door:
`postgres_sink`, which only `sinks.registry` imports.
"""
