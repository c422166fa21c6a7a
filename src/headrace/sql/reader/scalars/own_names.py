"""Names of select items without an alias, as far as Spark calls them after a column."""

from __future__ import annotations

import re
from collections.abc import Callable

from headrace.sql.reader.scalars.lexemes import Lexemes, Role, unbracketed, unquoted
from headrace.sql.reader.syntax.statement_cursor import string_value
from headrace.sql.reader.syntax.tokens import words

_CASTS = frozenset({"cast", "try_cast"})
_CAST_FUNCTIONS = words("bigint binary boolean date decimal double float int smallint string time timestamp tinyint")
"""Functions that are casts to the type of their name."""
_STRING = re.compile("[rR]?['\"]")
_OF_PATHS = frozenset(".[]")


def own_name(lexemes: Lexemes, whole: Callable[[tuple[str, ...]], bool]) -> str | None:
    """Return the name of a column, be it in brackets or cast, of a field or a literal, or None.

    Spark names `(b)` and `CAST(b AS INT)` b, `(s).f` and `v:f` f, and other expressions by their text
    (`AliasResolution` of its analyser), which is no name as a rule, but for literals: `'b'` is called b.

    Args:
        lexemes: The item.
        whole: Returns whether a name means a column, and not a field of one: casts of fields are named by their text.
    """
    lexemes = unbracketed(lexemes)
    if (named := _name(lexemes)) or (named := _field(lexemes)):
        return named[-1]
    if (literal := _literal(lexemes)) is not None:
        return literal
    operand = _cast(lexemes)
    if (step := _step(lexemes) or _step(operand)) is not None:
        return step
    cast = _name(operand)
    return cast[-1] if cast and whole(cast) else None


def _field(lexemes: Lexemes) -> tuple[str, ...]:
    """Return the name that `(s).f` is: brackets around a name mean nothing."""
    close = next((at for at, each in enumerate(lexemes) if each.text == "." and each.role is Role.OPERATOR), 0)
    base, steps = _name(lexemes[:close]), lexemes[close:]
    if not base or any(each.text != "." for each in steps[::2]) or len(steps) % 2:
        return ()
    return (*base, *(unquoted(each.text) for each in steps[1::2]))


def _literal(lexemes: Lexemes) -> str | None:
    """Return the text of strings that follow one another; nobody writes numbers as names."""
    if not lexemes or any(each.role is not Role.LITERAL or not _STRING.match(each.text) for each in lexemes):
        return None
    return "".join(string_value(each.text) for each in lexemes)


def _step(lexemes: Lexemes) -> str | None:
    """Return the last name in a path into a variant: of `v:a.b[0]`, b."""
    colon = next((at for at, each in enumerate(lexemes) if each.text == ":" and each.role is Role.OPERATOR), 0)
    path = lexemes[colon + 1 :]
    if not _name(lexemes[:colon]) or any(each.role is Role.OPERATOR and each.text not in _OF_PATHS for each in path):
        return None
    named = [each.text for each in path if each.role is not Role.OPERATOR and not each.text.isdigit()]
    if not named:
        return None
    return string_value(named[-1]) if _STRING.match(named[-1]) else unquoted(named[-1])


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
