"""Functions that return several rows: LATERAL VIEW, LATERAL, and whole select items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.algebra.relations import Generate, Relation
from headrace.algebra.scalar import Scalar
from headrace.algebra.words import function_word
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, resolved
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, closing_bracket, scalar
from headrace.sql.reader.syntax.query_shape import Extra, FunctionItem, Select
from headrace.sql.reader.syntax.tokens import words

_OUTER = {name: f"{name}_outer" for name in ("explode", "posexplode", "inline")}
_ALWAYS_A_ROW = words("json_tuple stack")
KNOWN = frozenset(_OUTER) | frozenset(_OUTER.values()) | _ALWAYS_A_ROW
"""The generators that are maintained."""


def as_generator(lexemes: Lexemes) -> Lexemes:
    """Return the lexemes, marked as a generator when they are nothing but a call of one."""
    if not lexemes or lexemes[0].role is not Role.CALL or lexemes[0].parts[0] not in KNOWN:
        return lexemes
    if closing_bracket(lexemes, 1) != len(lexemes) - 1:
        return lexemes
    return (replace(lexemes[0], role=Role.GENERATOR), *lexemes[1:])


def is_generator(lexemes: Lexemes) -> bool:
    """Return whether an expression was marked so."""
    return bool(lexemes) and lexemes[0].role is Role.GENERATOR


def generated(relation: Relation, lexemes: Lexemes, columns: Sequence[str]) -> tuple[Relation, tuple[str, ...]]:
    """Return a relation with what a generator gives for its rows.

    Args:
        relation: The rows.
        lexemes: The generator over their columns.
        columns: What its columns are called in the query.

    Returns:
        The relation, and the names of the new columns in it.
    """
    taken = Names()
    for name in relation.columns:
        taken.take(name)
    names = tuple(taken.take(column) for column in columns)
    return Generate(relation, scalar(lexemes), names), names


VIEW = "LATERAL VIEW"


def more_than_views(select: Select) -> bool:
    """Return whether a block has a clause that is not read, or LATERAL VIEWs over nothing."""
    return any(extra.construct != VIEW for extra in select.extras) or (bool(select.extras) and select.source is None)


def lateral_view(
    context: Context, relation: Relation, scope: Scope, extra: Extra, names: Names
) -> tuple[Relation, Scope]:
    """Return `LATERAL VIEW [OUTER] explode(…) alias AS column, …` over what stands before it.

    Args:
        context: The text.
        relation: What stands before it.
        scope: What names mean there.
        extra: Where it is written.
        names: Hands out column names that are free.
    """
    at, end = extra.range
    tokens = context.cursor.tokens
    outer = tokens[at].word == "OUTER"
    start = at + outer
    context.cursor.at = start + 1
    if start + 1 >= end or tokens[start + 1].text != "(":
        context.refuse_at(extra.construct, extra.at)
        return relation, replace(scope, opaque=True)
    context.cursor.skip_group()
    stop = context.cursor.at
    lexemes = as_generator(lexemes_of(context, (start, stop)))
    alias, columns = _aliases(context, stop, end)
    if not is_generator(lexemes) or alias is None or not columns:
        missing = None if columns else "LATERAL VIEW is maintained when its columns are named: alias AS column."
        context.refuse(not_maintained(extra.construct, context.place(extra.at), missing))
        return relation, replace(scope, opaque=True)
    resolved_lexemes = resolved(context, lexemes, scope)
    if any(lexeme.role is Role.NAME for lexeme in resolved_lexemes):
        return relation, replace(scope, opaque=True)
    call = scalar(resolved_lexemes)
    made = tuple(names.take(f"{alias}.{each}") for each in columns)
    result = Generate(relation, _outer(call, lexemes[0].parts[0]) if outer else call, made)
    visible = tuple(Visible((alias,), shown, name) for shown, name in zip(columns, made, strict=True))
    return result, scope.beside(Scope(visible, scope.case_sensitive))


def function_item(
    context: Context, relation: Relation, scope: Scope, item: FunctionItem, names: Names
) -> tuple[Relation, Scope] | None:
    """Read `LATERAL explode(…) AS alias(column, …)`; None for what is not maintained.

    Args:
        context: The text.
        relation: What stands before it.
        scope: What names mean there.
        item: The function.
        names: Hands out column names that are free.
    """
    first, end = item.arguments
    lexemes = as_generator(lexemes_of(context, (first - 2, end + 1)))
    if not is_generator(lexemes) or "." in item.name or item.extras or item.alias is None or not item.alias.columns:
        return None
    known = resolved(context, lexemes, scope)
    if any(lexeme.role is Role.NAME for lexeme in known):
        return None
    alias = item.alias
    made = tuple(names.take(f"{alias.name}.{each}") for each in alias.columns)
    visible = tuple(Visible((alias.name,), shown, name) for shown, name in zip(alias.columns, made, strict=True))
    return Generate(relation, scalar(known), made), scope.beside(Scope(visible, scope.case_sensitive))


def _aliases(context: Context, at: int, end: int) -> tuple[str | None, tuple[str, ...]]:
    """Return `alias [AS] column, …`."""
    tokens = context.cursor.tokens[at:end]
    if not tokens or not tokens[0].is_name:
        return None, ()
    rest = tokens[1:]
    rest = rest[1:] if rest and rest[0].word == "AS" else rest
    if any(not t.is_name for t in rest[::2]) or any(t.text != "," for t in rest[1::2]):
        return None, ()
    return tokens[0].name, tuple(token.name for token in rest[::2])


def _outer(call: Scalar, function: str) -> Scalar:
    """Return the generator that gives a row of NULLs where the call gives none."""
    wanted = _OUTER.get(function)
    if wanted is None:
        return call
    return Scalar((function_word(wanted), *call.words[1:]), call.deterministic)
