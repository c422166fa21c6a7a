"""UNPIVOT: columns become rows.

`t UNPIVOT (v FOR n IN (a, b AS x))` is t with `posexplode(array(a, b))`, the position standing for the name 'a' or
'x', without the columns that became rows, and without rows whose value is NULL unless INCLUDE NULLS is written. With
several values, `((v, w) FOR n IN ((a, b), (c, d)))`, the position chooses the others as well; a row
is left out when all its values are NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headrace.algebra.relations import Filter, Generate, Project, Relation
from headrace.algebra.scalar import Scalar, any_of, call_of, column, compose, text_literal
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.syntax.query_shape import Extra
from headrace.sql.reader.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause as read.

    Args:
        values: Names of the columns of values.
        name: Name of the column of names.
        columns: The columns that become rows, as many at once as there are values, with the name their rows get.
        nulls: Whether rows whose values are all NULL stay.
    """

    values: tuple[str, ...]
    name: str
    columns: tuple[tuple[tuple[Visible, ...], str], ...]
    nulls: bool


def unpivoted(
    context: Context, relation: Relation, scope: Scope, extra: Extra, qualifier: tuple[str, ...], names: Names
) -> tuple[Relation, Scope] | None:
    """Return a relation with some of its columns as rows.

    None for a clause that is not understood.

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
    gone = {visible.internal for group, _ in clause.columns for visible in group}
    place, name = names.take("unpivot.place"), names.take(clause.name)
    values = [names.take(each) for each in clause.values]
    positions = [[group[i].internal for group, _ in clause.columns] for i in range(len(values))]
    first = call_of("posexplode", call_of("array", *map(column, positions[0])))
    rows: Relation = Generate(relation, first, (place, values[0]))
    others = [(v, _at(place, columns)) for v, columns in zip(values[1:], positions[1:], strict=True)]
    if others:
        rows = Project(rows, (*identity(rows.columns), *others))
    if not clause.nulls:
        present = [compose("{x} IS NOT NULL", x=column(each)) for each in values]
        rows = Filter(rows, any_of(present))
    kept = tuple(visible for visible in scope.columns if visible.internal not in gone)
    label = _label(place, [text for _, text in clause.columns])
    items = (*identity(tuple(v.internal for v in kept)), (name, label), *identity(tuple(values)))
    added = (Visible(qualifier, clause.name, name), *map(partial(Visible, qualifier), clause.values, values))
    return Project(rows, items), replace(scope, columns=(*kept, *added))


def _at(place: str, columns: Sequence[str]) -> Scalar:
    """Return the column whose turn it is."""
    return _case(place, map(column, columns))


def _label(place: str, texts: Sequence[str]) -> Scalar:
    return _case(place, map(text_literal, texts))


def _case(place: str, values: Iterable[Scalar]) -> Scalar:
    parts = {f"v{i}": each for i, each in enumerate(values)}
    cases = " ".join(f"WHEN {i} THEN {{{name}}}" for i, name in enumerate(parts))
    return compose(f"CASE {{place}} {cases} END", place=column(place), **parts)


def _clause(context: Context, scope: Scope, extra: Extra) -> Clause | None:
    """Read an UNPIVOT clause, of single columns or of rows of columns."""
    start, end = extra.range
    tokens = context.cursor.tokens[start:end]
    at = next((i for i, token in enumerate(tokens) if token.word == "FOR"), 0)
    words = [token.word for token in tokens[at:]]
    values = _row(tokens[:at])
    if len(words) < 5 or words[2:4] != ["IN", "("] or words[-1] != ")" or not tokens[at + 1].is_name:
        return None
    if not values or any(len(each) != 1 or not each[0].is_name for each in values):
        return None
    columns = [_columns(scope, each, len(values)) for each in _split(tokens[at + 4 : -1])]
    if None in columns:
        return None
    nulls = context.cursor.tokens[extra.at + 1].word == "INCLUDE"
    found = tuple(each for each in columns if each is not None)
    return Clause(tuple(each[0].name for each in values), tokens[at + 1].name, found, nulls)


def _row(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts of `(a, b)`, or the one part of `a`."""
    bracketed = len(tokens) > 1 and tokens[0].text == "(" and tokens[-1].text == ")"
    return _split(tokens[1:-1]) if bracketed else [list(tokens)]


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _columns(scope: Scope, tokens: Sequence[Token], width: int) -> tuple[tuple[Visible, ...], str] | None:
    """Return columns for one row, and the name of that row.

    An alias, or their own names, joined.
    """
    if not tokens or tokens[0].text != "(":
        found = _column(scope, tokens)
        return None if found is None or width > 1 else ((found[0],), found[1])
    closing = next((i for i, token in enumerate(tokens) if token.text == ")"), 0)
    rest = tokens[closing + 1 :]
    rest = rest[1:] if rest and rest[0].word == "AS" else rest
    parts = [_column(scope, each) for each in _row(tokens[: closing + 1])]
    if len(parts) != width or len(rest) > 1 or any(not token.is_name for token in rest):
        return None
    known = [each for each in parts if each is not None]
    if len(known) < width:
        return None
    return tuple(c for c, _ in known), rest[0].name if rest else "_".join(name for _, name in known)


def _column(scope: Scope, tokens: Sequence[Token]) -> tuple[Visible, str] | None:
    """Return a column and the label of its rows: its alias, or its own name as declared."""
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
