"""Capture from a Citus cluster: a slot on every node, landed together at cuts.

In come the coordinator's connection string, tables of any placement, and the position landed last: one mark per node.
Out go landings, each of which has exactly what was committed before one cut over all nodes.
"""
