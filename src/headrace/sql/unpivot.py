"""UNPIVOT: columns become rows.

`t UNPIVOT (v FOR n IN (a, b AS x))` is t with `posexplode(array(a, b))`, the position standing for the name 'a' or 'x',
without the columns that became rows, and without rows whose value is NULL unless INCLUDE NULLS is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.algebra.relations import Filter, Generate, Project, Relation
from headrace.algebra.scalar import Scalar, column, compose
from headrace.algebra.tree import identity
from headrace.names import quote
from headrace.sql.context import Context
from headrace.sql.naming import Names
from headrace.sql.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.shape import Extra
from headrace.sql.tokens import Token


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause as read.

    Args:
        value: Name of the column of values.
        name: Name of the column of names.
        columns: The columns that become rows, each with the name its rows get.
        nulls: Whether rows whose value is NULL stay.
    """

    value: str
    name: str
    columns: tuple[tuple[Visible, str], ...]
    nulls: bool


def unpivoted(
    context: Context, relation: Relation, scope: Scope, extra: Extra, qualifier: tuple[str, ...], names: Names
) -> tuple[Relation, Scope] | None:
    """A relation with some of its columns as rows; None for a clause that is not understood.

    Args:
        context: The text.
        relation: The rows.
        scope: Their columns.
        extra: Where the clause stands.
        qualifier: What may stand before the new columns.
        names: Hands out column names.
    """
    shown = scope.star()
    clause = None if scope.opaque or shown != scope.columns else _clause(context, scope, extra)
    if clause is None:
        return None
    gone = {visible.internal for visible, _ in clause.columns}
    place, value, name = (names.take(each) for each in ("unpivot.place", clause.value, clause.name))
    arguments = ", ".join(quote(visible.internal) for visible, _ in clause.columns)
    rows: Relation = Generate(relation, Scalar(f"posexplode(array({arguments}))", frozenset(gone)), (place, value))
    if not clause.nulls:
        rows = Filter(rows, compose("{v} IS NOT NULL", v=column(value)))
    kept = tuple(visible for visible in scope.columns if visible.internal not in gone)
    label = _label(place, [text for _, text in clause.columns])
    items = (*identity(tuple(v.internal for v in kept)), (name, label), (value, column(value)))
    added = (Visible(qualifier, clause.name, name), Visible(qualifier, clause.value, value))
    return Project(rows, items), replace(scope, columns=(*kept, *added))


def _label(place: str, texts: Sequence[str]) -> Scalar:
    literals = (text.replace("\\", "\\\\").replace("'", "\\'") for text in texts)
    cases = " ".join(f"WHEN {i} THEN '{text}'" for i, text in enumerate(literals))
    return Scalar(f"CASE {quote(place)} {cases} END", frozenset({place}))


def _clause(context: Context, scope: Scope, extra: Extra) -> Clause | None:
    """Read `[INCLUDE NULLS] (value FOR name IN (column [AS alias], …))`."""
    start, end = extra.range
    tokens = context.cursor.tokens[start:end]
    words = [token.word for token in tokens]
    if len(tokens) < 7 or words[1] != "FOR" or words[3:5] != ["IN", "("] or words[-1] != ")":
        return None
    columns = [_column(scope, each) for each in _split(tokens[5:-1])]
    if not (tokens[0].is_name and tokens[2].is_name) or None in columns:
        return None
    nulls = context.cursor.tokens[extra.at + 1].word == "INCLUDE"
    found = tuple(each for each in columns if each is not None)
    return Clause(tokens[0].name, tokens[2].name, found, nulls)


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _column(scope: Scope, tokens: Sequence[Token]) -> tuple[Visible, str] | None:
    """A column and the name of its rows: its alias, or its own name where that is written as it was declared."""
    length = 1
    while length + 1 < len(tokens) and tokens[length].text == ".":
        length += 2
    rest = tokens[length:]
    rest = rest[1:] if rest and rest[0].word == "AS" else rest
    if not tokens or len(rest) > 1 or any(not t.is_name for t in (*tokens[:length:2], *rest)):
        return None
    parts = tuple(token.name for token in tokens[:length:2])
    try:
        found = scope.resolve(parts)
    except AmbiguousNameError:
        return None
    if found is None or found.parts != len(parts) or not (rest or found.column.name == parts[-1]):
        return None
    return found.column, rest[0].name if rest else parts[-1]
