"""A lake that a catalog server keeps: looked at, and moved between intent and confirmation.

In come publications and the server, as a protocol. Out go rows of `iceberg_tables` that say what the lake showed when
it was last looked at, by which everything else goes as if the lake were here.
"""
