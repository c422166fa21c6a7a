"""The names of the functions that a text may call."""

from __future__ import annotations

from itertools import pairwise

from headrace.sql.reader.syntax.tokens import tokenize


def called(sql: str) -> frozenset[str]:
    """Return every name that stands before a bracket, in lower case.

    Not all of them need be functions.
    """
    tokens = tokenize(sql)
    return frozenset(token.name.lower() for token, after in pairwise(tokens) if token.is_name and after.text == "(")
