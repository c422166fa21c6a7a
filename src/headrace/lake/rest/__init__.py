"""A lake in an Iceberg REST catalog: its HTTP API, and publications as commits of it.

In come moves of tables, as metadata files. Out go the files that the server shows then, or an error after which it
shows what it did before.
"""
