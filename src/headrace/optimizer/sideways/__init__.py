"""Sideways information passing: hands known keys down to the scans.

In comes a tree with keys known at some place. Out go restrictions further down, at the scans that can use them.
"""
