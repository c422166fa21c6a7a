"""Scalars as pieces of the user's own text.

In come ranges of tokens. Out go pieces that name columns, functions and conditions without parsing what they compute.
"""
