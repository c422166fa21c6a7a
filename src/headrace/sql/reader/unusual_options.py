"""Options of the session by which Spark finds another meaning in the same text.

They are part of a definition, and FULL refreshes and `verify` run its text under them. The reader goes by their usual
values: where another one may matter, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.semantics import (
    CTE_PRECEDENCE,
    ORDER_BY_ORDINAL,
    QUOTED_NAMES,
    RELATION_PRECEDENCE,
    SET_OPERATIONS_IN_ORDER,
)
from headrace.sql.reader.context import Context
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.syntax.tokens import Token

_CONCERNED: Mapping[str, Callable[[Token], bool]] = {
    QUOTED_NAMES: lambda token: token.text.startswith('"'),
    CTE_PRECEDENCE: lambda token: token.word == "WITH",
    ORDER_BY_ORDINAL: lambda token: token.word == "ORDER",
}
"""By option, the words that it concerns; joins and set operations are looked at where they are read."""

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
        concerned = _CONCERNED[option]
        at = next((at for at, token in enumerate(context.cursor.tokens) if concerned(token)), None)
        if at is not None:
            refuse_unusual(context, option, at)
