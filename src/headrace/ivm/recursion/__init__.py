"""Recursive queries: monotonicity, semi-naive iteration, delete-and-rederive.

In comes a recursive relation with the change of what it reads. Out go the steps that move its fixed point.
"""
