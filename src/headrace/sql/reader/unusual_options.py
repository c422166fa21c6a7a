"""Options of the session by which Spark finds another meaning in the same text.

They are part of a definition, and FULL refreshes and `verify` run its text under them. The reader goes by their usual
values: where another one may matter, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from headrace.semantics import (
    CTE_PRECEDENCE,
    ORDER_BY_ORDINAL,
    QUOTED_NAMES,
    RELATION_PRECEDENCE,
    SET_OPERATIONS_IN_ORDER,
)
from headrace.sql.reader.context import Context
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.syntax.tokens import Kind, Token


def _quoted(context: Context) -> Iterator[int]:
    return (at for at, token in enumerate(context.cursor.tokens) if token.text.startswith('"'))


def _several_with(context: Context) -> Iterator[int]:
    """Yield every WITH where there may be several: two may name the same.

    There may be one in the text that a view stands in.
    """
    found = [at for at, token in enumerate(context.cursor.tokens) if token.word == "WITH"]
    yield from found if len(found) > 1 or context.views else ()


def _ordered_by_number(context: Context) -> Iterator[int]:
    """Yield every ORDER BY one of whose terms begins with a number, in whatever brackets."""
    tokens = context.cursor.tokens
    return (at for at, token in enumerate(tokens) if token.word == "ORDER" and _has_number(tokens[at + 2 :]))


def _has_number(terms: Sequence[Token]) -> bool:
    depth, begins = 0, True
    for token in terms:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth < 0 or (begins and token.kind is Kind.NUMBER):
            return depth >= 0
        begins = (begins and token.text in ("(", "+", "-")) or (token.text == "," and not depth)
    return False


_CONCERNED: Mapping[str, Callable[[Context], Iterator[int]]] = {
    QUOTED_NAMES: _quoted,
    CTE_PRECEDENCE: _several_with,
    ORDER_BY_ORDINAL: _ordered_by_number,
}
"""By option, what finds words that it concerns; joins and set operations are looked at where they are read."""

_HINTS: Mapping[str, str] = {
    QUOTED_NAMES: "Write names in backquotes, and texts in single quotes.",
    RELATION_PRECEDENCE: "Write JOIN for the comma, or brackets around what is joined first.",
    SET_OPERATIONS_IN_ORDER: "Write brackets around what is computed first.",
}


_USUAL = "Create it in a session with the usual value."


def refuse_unusual(context: Context, option: str, token: int) -> None:
    """Refuse what begins at a token where an option has another value than usual."""
    if option in context.unusual:
        message = f"Spark reads this in another way where {option} is not as usual."
        context.refuse(not_maintained(option, context.place(token), message, _HINTS.get(option, _USUAL)))


def refuse_unusual_words(context: Context) -> None:
    """Refuse the first word of a text that an option concerns which is not as usual."""
    for option in sorted(context.unusual & _CONCERNED.keys()):
        at = next(_CONCERNED[option](context), None)
        if at is not None:
            refuse_unusual(context, option, at)
