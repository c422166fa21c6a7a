"""Names for the fields of `struct(…)`.

Spark names a field after the column it is given, and the columns of the algebra have other names than the user's. So
`struct(a, b + 1)` is read as `named_struct('a', a, 'col2', b + 1)`, which is what it means in the user's own text.
"""

from __future__ import annotations

import re

from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    closing_bracket,
    split_arguments,
    unbracketed,
    unquoted,
)

_CONSTANTS = frozenset({"NULL", "TRUE", "FALSE"})


def with_field_names(lexemes: Lexemes) -> Lexemes:
    """Return an expression, its names not resolved yet, with the fields of its structs named."""
    out: list[Lexeme] = []
    at = 0
    while at < len(lexemes):
        closing = closing_bracket(lexemes, at + 1) if _is_struct(lexemes[at]) else at
        arguments = split_arguments(lexemes[at + 2 : closing])
        if not arguments or not all(arguments) or any(each[0].role is Role.STAR for each in arguments):
            out.append(lexemes[at])
            at += 1
            continue
        call, bracket = lexemes[at], lexemes[at + 1]
        out += [Lexeme(Role.CALL, "named_struct", call.at, call.spaced, ("named_struct",)), bracket]
        for i, argument in enumerate(arguments):
            out += [Lexeme(Role.OPERATOR, ",", call.at, False)] if i else []
            out += _named(with_field_names(argument), i, spaced=i > 0)
        out.append(lexemes[closing])
        at = closing + 1
    return tuple(out)


def _is_struct(lexeme: Lexeme) -> bool:
    return lexeme.role is Role.CALL and lexeme.parts[0] == "struct"


def _named(argument: Lexemes, place: int, *, spaced: bool) -> Lexemes:
    """Return a field's name and its value."""
    name, value = _name_of(argument, place)
    text = name.replace("\\", "\\\\").replace("'", "\\'")
    at = value[0].at
    return (Lexeme(Role.LITERAL, f"'{text}'", at, spaced), Lexeme(Role.OPERATOR, ",", at, False), *_spaced(value))


def _name_of(argument: Lexemes, place: int) -> tuple[str, Lexemes]:
    if len(argument) > 1 and argument[-1].role is Role.ALIAS:
        explicit = argument[-2].role is Role.OPERATOR and argument[-2].text.upper() == "AS"
        return unquoted(argument[-1].text), argument[: -2 if explicit else -1]
    bare = unbracketed(argument)
    if len(bare) == 1 and bare[0].role is Role.NAME:
        return bare[0].parts[-1], argument
    # the variable of a lambda function names the field too
    if len(bare) == 1 and re.fullmatch(r"[^\W\d]\w*", bare[0].text) and bare[0].text.upper() not in _CONSTANTS:
        return bare[0].text, argument
    return f"col{place + 1}", argument


def _spaced(value: Lexemes) -> Lexemes:
    first = value[0]
    return (Lexeme(first.role, first.text, first.at, True, first.parts, first.written), *value[1:])
