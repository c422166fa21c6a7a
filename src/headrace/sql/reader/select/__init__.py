"""One SELECT block: grouping, aggregates, windows, limits.

In come a parsed block and the relation of its FROM clause. Out goes the relation of the block.
"""
