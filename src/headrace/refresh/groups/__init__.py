"""Groups and cycles: what is refreshed and published together.

In come the graph, declared groups and the members' facts. Out go units in order, and the fixed point of a cycle.
"""
