"""Names of select items without an alias, as far as Spark calls them after a column."""

from __future__ import annotations

from collections.abc import Callable

from headrace.sql.reader.scalars.lexemes import Lexemes, Role, unbracketed
from headrace.sql.reader.syntax.tokens import words

_CASTS = frozenset({"cast", "try_cast"})
_CAST_FUNCTIONS = words("bigint binary boolean date decimal double float int smallint string time timestamp tinyint")
"""Functions that are casts to the type of their name."""


def own_name(lexemes: Lexemes, whole: Callable[[tuple[str, ...]], bool]) -> str | None:
    """Return the name of a column, in brackets or cast, or of a struct's field; None for others.

    Spark names `(b)` and `CAST(b AS INT)` b, and other expressions by their text (`AliasResolution` of its analyser).

    Args:
        lexemes: The item.
        whole: Returns whether a name means a column, and not a field of one: casts of fields are named by their text.
    """
    lexemes = unbracketed(lexemes)
    if named := _name(lexemes):
        return named[-1]
    cast = _name(_cast(lexemes))
    return cast[-1] if cast and whole(cast) else None


def _name(lexemes: Lexemes) -> tuple[str, ...]:
    lexemes = unbracketed(lexemes)
    return lexemes[0].parts if len(lexemes) == 1 and lexemes[0].role is Role.NAME else ()


def _cast(lexemes: Lexemes) -> Lexemes:
    """Return the operand of a cast that is the whole; nothing for others."""
    if len(lexemes) > 2 and lexemes[0].role is Role.CALL and _is_group(lexemes[1:]):
        function, inside = lexemes[0].parts[-1].lower(), lexemes[2:-1]
        if function in _CAST_FUNCTIONS:
            return inside
        if function in _CASTS:
            return inside[: next((i for i, each in enumerate(inside) if each.text.upper() == "AS"), 0)]
    at = next((i for i, each in enumerate(lexemes) if each.text == "::"), 0)
    return lexemes[:at] if all(each.role is Role.LITERAL for each in lexemes[at + 1 :]) else ()


def _is_group(lexemes: Lexemes) -> bool:
    """Return whether the first of the brackets is closed by the last."""
    depth = 0
    for at, each in enumerate(lexemes):
        depth += (each.text == "(") - (each.text == ")")
        if not depth:
            return at == len(lexemes) - 1
    return False
