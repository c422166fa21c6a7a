"""Sideways information passing: which rows matter to what reads them.

In comes a tree with keys known at some place. Out go restrictions further down, at the scans that can use them.
"""
