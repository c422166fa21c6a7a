"""Columns written with more of their table's name than its last part.

A source that is put into a query as a subquery can be called by one name only: `shop.orders.id` must become
`orders.id` then.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.sql.reader.syntax.tokens import Token, tokenize


def unqualify(query: str, tables: Iterable[tuple[str, ...]]) -> str:
    """Shorten qualified columns (and stars) of some tables to the last part of the table's name.

    Args:
        query: The text.
        tables: Full names of the tables, split and unquoted.

    Returns:
        The text; every other character stays.
    """
    tokens = tokenize(query)
    qualifiers = {_folded(table[i:]) for table in tables for i in range(len(table) - 1)}
    longest = max(map(len, qualifiers), default=0)
    pieces: list[str] = []
    at = 0
    for index, token in enumerate(tokens):
        if token.start < at or not token.is_name or (index and tokens[index - 1].text == "."):
            continue
        parts = _dotted(tokens, index)
        for size in range(min(longest, len(parts) - 1), 1, -1):
            if _folded(p.name for p in parts[:size]) in qualifiers:
                pieces.append(query[at : token.start])
                at = parts[size - 1].start
                break
    return "".join(pieces) + query[at:]


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _dotted(tokens: tuple[Token, ...], index: int) -> list[Token]:
    """Return the names of `a.b.c` that begins at a token; a star may stand last."""
    parts = [tokens[index]]
    while index + 2 < len(tokens) and tokens[index + 1].text == ".":
        index += 2
        if not tokens[index].is_name and tokens[index].text != "*":
            break
        parts.append(tokens[index])
    return parts
