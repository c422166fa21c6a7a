"""One source, several nodes: each with a capture, a position and a health of its own.

In come the captures of one kind, a node each, and the vector of their positions. Out goes one `Capture`, whose landings
have what all nodes gave, and hold back the nodes that gave nothing. Knows no kind.
"""
