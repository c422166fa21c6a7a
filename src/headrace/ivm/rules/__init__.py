"""The delta rules, one operator a file; `registry` lists them all.

In comes a node and `Change`, which answers for its inputs. Out goes the node's own change, a bag of weighted rows.
"""
