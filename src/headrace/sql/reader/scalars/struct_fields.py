"""Names for the fields of `struct(…)`, `(a, b)` and `arrays_zip(…)`.

Spark names a field after the column it is given, and the columns of the algebra have other names than the user's. So
`struct(a, b + 1)` is read as `named_struct('a', a, 'col2', b + 1)`, which is what it means in the user's own text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headrace.names import quote
from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    closing_bracket,
    split_alias,
    split_arguments,
    unbracketed,
    unquoted,
)
from headrace.sql.reader.scalars.matching import is_operand
from headrace.sql.reader.syntax.tokens import words

_CONSTANTS = frozenset({"NULL", "TRUE", "FALSE"})
_BRACKETS_AFTER = words("IN OVER FILTER GROUP ANY SOME ALL LIKE ILIKE")
"""Words whose brackets are their own, and make no row."""


def with_field_names(lexemes: Lexemes) -> Lexemes:
    """Return an expression, its names not resolved yet, with the fields of its structs named."""
    out: list[Lexeme] = []
    at = 0
    while at < len(lexemes):
        opening = _opening(lexemes, at)
        closing = at if opening is None else closing_bracket(lexemes, opening)
        arguments = () if opening is None else split_arguments(lexemes[opening + 1 : closing])
        if opening is None or not _named_by_arguments(lexemes, at, opening, closing, arguments):
            out.append(lexemes[at])
            at += 1
            continue
        head = lexemes[at]
        if head.role is Role.CALL and head.parts[0] == "arrays_zip":
            out += _zipped(head, arguments)
        else:
            out += _struct(head, arguments)
        at = closing + 1
    return tuple(out)


def _opening(lexemes: Lexemes, at: int) -> int | None:
    """Return the bracket of what names its fields after its arguments, if that begins here."""
    lexeme = lexemes[at]
    if lexeme.role is Role.CALL and lexeme.parts[0] in ("struct", "arrays_zip"):
        return at + 1
    if lexeme.role is not Role.OPERATOR or lexeme.text != "(":
        return None
    before = lexemes[at - 1] if at else None
    called = before is not None and before.role in (Role.CALL, Role.WINDOW, Role.GENERATOR)
    own = before is not None and before.role is Role.OPERATOR and before.text.upper() in _BRACKETS_AFTER
    return None if called or own else at


def _named_by_arguments(lexemes: Lexemes, at: int, opening: int, closing: int, arguments: Sequence[Lexemes]) -> bool:
    """Return whether fields are named after arguments, and the names may be lost."""
    if not arguments or not all(arguments) or any(each[0].role is Role.STAR for each in arguments):
        return False
    if opening > at:
        return True
    # a row of constants has the names that Spark gives it, and the values of `(a, b) IN (SELECT …)` stay apart
    constant = all(lexeme.role is Role.LITERAL for each in arguments for lexeme in each)
    return len(arguments) > 1 and not constant and not _among_rows(lexemes, closing + 1)


def _among_rows(lexemes: Lexemes, at: int) -> bool:
    """Return whether `IN (SELECT …)` stands here."""
    at += at < len(lexemes) and lexemes[at].text.upper() == "NOT"
    return at + 1 < len(lexemes) and lexemes[at].text.upper() == "IN" and lexemes[at + 1].role is Role.SUBQUERY


def _struct(head: Lexeme, arguments: Sequence[Lexemes]) -> Lexemes:
    out = [replace(head, role=Role.CALL, text="named_struct", parts=("named_struct",)), _operator("(", head)]
    for i, argument in enumerate(arguments):
        name, value = _name_of(argument)
        out += [_operator(",", head)] if i else []
        out += [_literal(name or f"'col{i + 1}'", head, spaced=i > 0), _operator(",", head)]
        out += _spaced(with_field_names(value))
    return (*out, _operator(")", head))


def _zipped(head: Lexeme, arguments: Sequence[Lexemes]) -> Lexemes:
    """Return `arrays_zip` with its fields named: it numbers those that are no columns."""
    out = [_call("transform", head, spaced=head.spaced), _operator("(", head), _call("arrays_zip", head)]
    out.append(_operator("(", head))
    for i, argument in enumerate(arguments):
        out += [_operator(",", head)] if i else []
        value = with_field_names(argument)
        out += [_call("coalesce", head, spaced=i > 0), _operator("(", head), replace(value[0], spaced=False)]
        out += [*value[1:], _operator(")", head)]
    out += [_operator(")", head), _operator(",", head), _literal("e", head), _operator("->", head, spaced=True)]
    out += [_call("named_struct", head, spaced=True), _operator("(", head)]
    for i, argument in enumerate(arguments):
        out += [_operator(",", head)] if i else []
        out += [_literal(_name_of(argument)[0] or f"'{i}'", head, spaced=i > 0), _operator(",", head)]
        out += [_literal("e", head), _operator(".", head), _literal(quote(str(i)), head, spaced=False)]
    return (*out, _operator(")", head), _operator(")", head))


def _name_of(argument: Lexemes) -> tuple[str | None, Lexemes]:
    """Return the name that Spark takes from an argument, as a literal, and the argument's value.

    No name where it counts its fields.
    """
    value, alias = split_alias(argument)
    if value and alias:
        return _text(unquoted(alias[-1].text)), value
    bare = unbracketed(argument)
    last = bare[-1]
    if len(bare) == 1 and last.role is Role.NAME:
        return _text(last.parts[-1]), argument
    # the variable of a lambda function names the field too
    if len(bare) == 1 and re.fullmatch(r"[^\W\d]\w*", last.text) and last.text.upper() not in _CONSTANTS:
        return _text(last.text), argument
    if len(bare) > 2 and is_operand(bare):
        if bare[-2].text == "." and last.role is Role.LITERAL:
            return _text(unquoted(last.text)), argument
        if [each.text for each in (bare[-3], last)] == ["[", "]"] and bare[-2].text[-1] in "'\"":
            return bare[-2].text, argument
    return None, argument


def _text(name: str) -> str:
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def _operator(text: str, like: Lexeme, *, spaced: bool = False) -> Lexeme:
    return Lexeme(Role.OPERATOR, text, like.at, spaced)


def _literal(text: str, like: Lexeme, *, spaced: bool = True) -> Lexeme:
    return Lexeme(Role.LITERAL, text, like.at, spaced)


def _call(function: str, like: Lexeme, *, spaced: bool = False) -> Lexeme:
    return Lexeme(Role.CALL, function, like.at, spaced, (function,))


def _spaced(value: Lexemes) -> Lexemes:
    return (replace(value[0], spaced=True), *value[1:])
