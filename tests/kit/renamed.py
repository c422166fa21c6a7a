"""Queries with a name changed: some mean something else then, some nothing at all, and some could mean two things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from headrace.sql.reader.syntax.tokens import Token, tokenize

_KEYWORDS = re.compile(
    r"(?i)select|from|where|and|or|not|as|on|using|join|left|right|full|outer|inner|cross|natural|lateral|group|by|having"
    r"|order|limit|offset|union|all|distinct|intersect|except|with|recursive|case|when|then|else|end|is|null|in|exists"
    r"|between|like|asc|desc|over|partition|values|true|false|date|interval|day|cast|filter|within"
)


def renamed(query: str, columns: Sequence[str], random: Random, number: int) -> Iterator[str]:
    """Variants of a query.

    Args:
        query: The query.
        columns: Columns of the tables it reads.
        random: Chance.
        number: How many there are at most.
    """
    tokens = tokenize(query)
    places = [i for i in range(len(tokens)) if _is_name(tokens, i)]
    qualifiers = sorted({a.text for a, b in pairwise(tokens) if b.text == "." and a.is_name})
    found: dict[str, None] = {}
    for _ in range(number * 4 if places else 0):
        at = random.choice(places)
        name = random.choice([*columns, "nope"])
        found[random.choice(_CHANGES)(query, tokens, at, name, random.choice(qualifiers or [""]))] = None
    found.pop(query, None)
    yield from list(found)[:number]


def _is_name(tokens: list[Token], at: int) -> bool:
    token = tokens[at]
    called = at + 1 < len(tokens) and tokens[at + 1].text == "("
    return token.is_name and not called and _KEYWORDS.fullmatch(token.text) is None


def _another(query: str, tokens: list[Token], at: int, name: str, qualifier: str) -> str:
    return query[: tokens[at].start] + name + query[tokens[at].end :]


def _bare(query: str, tokens: list[Token], at: int, name: str, qualifier: str) -> str:
    """The name without its qualifier, which may leave it ambiguous."""
    return query[: tokens[at - 2].start] + query[tokens[at].start :] if _is_qualified(tokens, at) else query


def _qualified(query: str, tokens: list[Token], at: int, name: str, qualifier: str) -> str:
    """The name under another qualifier, or under one."""
    named = tokens[at - 1].word in ("AS", "FROM", "JOIN") or (at + 1 < len(tokens) and tokens[at + 1].word == "AS")
    if not qualifier or named:
        return query
    start = tokens[at - 2].start if _is_qualified(tokens, at) else tokens[at].start
    return f"{query[:start]}{qualifier}.{tokens[at].text}{query[tokens[at].end :]}"


def _is_qualified(tokens: list[Token], at: int) -> bool:
    return at > 1 and tokens[at - 1].text == "." and tokens[at - 2].is_name


_CHANGES = (_another, _another, _bare, _qualified, _qualified)
