"""Several PostgreSQL servers as one source, each with shards of its tables.

In come the servers as a user names them. Out go options, one capture over all of them, and their health. How nodes are
read and joined is in `sources.nodes`; what they must agree in before that, and their words, are here.
"""
