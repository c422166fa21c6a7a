"""Scalars as lexemes of the user's own text.

In come ranges of tokens. Out go lexemes that name columns, functions and conditions without parsing what they compute.
"""
