"""LATERAL subqueries: derived tables that read columns of what stands before them.

`L, LATERAL (SELECT f FROM R WHERE p)` is `π_f(L ⋈_p R)`, as SELECT and WHERE look at each pair of rows alone. `L LEFT
JOIN LATERAL (…) ON q` is `L ⟕_{p∧q} π_f(R)` where f reads columns of R only, since its columns are NULL beside a row
without partners. A subquery that reads no column of L is a derived table like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.algebra.relations import Filter, Join, OuterJoin, Project, Relation, Values
from headrace.algebra.scalar import TRUE, Scalar, all_of, column, compose
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context, Output
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, resolved
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, input_lexeme, scalar, split_alias, unquoted
from headrace.sql.reader.scalars.own_names import own_name
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.select.windows import has_window
from headrace.sql.reader.syntax.query_shape import Query, QueryItem, Range, Select
from headrace.sql.reader.tables.generators import as_generator, is_generator, more_than_views

ReadFrom = Callable[[Select], tuple[Relation, Scope]]
"""Reads FROM and the LATERAL VIEWs behind it."""

ReadQuery = Callable[[Context], Output]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the subquery.

    Args:
        relation: What its FROM gives.
        scope: What names mean there.
        condition: Its WHERE, over columns of both sides.
        items: Its select list, over columns of both sides, each with its name.
    """

    relation: Relation
    scope: Scope
    condition: Scalar | None
    items: tuple[tuple[str | None, Lexemes], ...]


def alone(context: Context, read: ReadQuery) -> Output | None:
    """Return the subquery read by itself; None when it reads columns of what stands before it.

    Args:
        context: The text.
        read: Reads it.
    """
    trial = context.trial()
    output = read(trial)
    if trial.findings.doubts and not trial.findings.refusals:
        return None
    context.findings.refusals.extend(trial.findings.refusals)
    context.read_ctes.update(trial.read_ctes)
    return output


def correlated(context: Context, item: QueryItem, outer: Scope, read_from: ReadFrom) -> Rows | None:
    """Return the subquery with its outer references.

    None for one of another shape than SELECT … FROM … WHERE.

    Args:
        context: The text.
        item: The subquery.
        outer: Columns of what stands before it.
        read_from: Reads its FROM.
    """
    select = _plain(item.query)
    if select is None:
        return None
    relation: Relation = Values((), ((),))
    scope = Scope((), context.case_sensitive)
    if select.source is not None:
        relation, scope = read_from(select)
    reader = OuterReader(context, scope, outer)
    condition = None if select.where is None else reader.expression(lexemes_of(context, select.where))
    items = [each for within in select.items for each in reader.items(within)]
    if reader.failed or scope.opaque:
        return None
    return Rows(relation, scope, None if condition is None else scalar(condition), tuple(items))


def _plain(query: Query) -> Select | None:
    body = query.body
    simple = isinstance(body, Select) and not (body.distinct or body.group or body.having or more_than_views(body))
    ordered = all(extra.harmless for extra in query.extras)
    return body if isinstance(body, Select) and simple and ordered and not (query.ctes or query.recursive) else None


class OuterReader:
    """Reads expressions whose names are the subquery's columns, else outer columns.

    Args:
        context: The text.
        inner: Columns of the subquery.
        outer: Columns of what stands before it.
    """

    def __init__(self, context: Context, inner: Scope, outer: Scope) -> None:
        self.context = context
        self.inner = inner
        self.outer = outer
        self.aliases: set[str] = set()
        self.failed = False

    def expression(self, lexemes: Lexemes) -> Lexemes:
        """Return the lexemes with every name resolved."""
        asks = (
            has_aggregate(lexemes)
            or has_window(lexemes)
            or has_subquery(lexemes)
            or is_generator(as_generator(lexemes))
        )
        if asks:
            self.failed = True
            return ()
        out: list[Lexeme] = []
        for lexeme in lexemes:
            out.extend(self._named(lexeme) if lexeme.role is Role.NAME else (lexeme,))
        known = resolved(self.context, tuple(out), self.inner)
        self.failed = self.failed or any(lexeme.role in (Role.NAME, Role.SUBQUERY) for lexeme in known)
        return known

    def _named(self, lexeme: Lexeme) -> Lexemes:
        if self.inner.knows(lexeme.parts) or not self.outer.knows(lexeme.parts):
            return (lexeme,)
        if self.context.fold(lexeme.parts[0]) in self.aliases:
            # the alias of another item, or a column of what stands before: Spark's to decide
            self.failed = True
        return resolved(self.context, (lexeme,), self.outer)

    def _has_column(self, parts: tuple[str, ...]) -> bool:
        return self.inner.has_column(parts) or (not self.inner.knows(parts) and self.outer.has_column(parts))

    def items(self, within: Range) -> list[tuple[str | None, Lexemes]]:
        """Return a select item, or the columns of a star."""
        tokens = self.context.cursor.tokens[within[0] : within[1]]
        if tokens[-1].text == "*" and all(t.is_name for t in tokens[:-1:2]) and len(tokens) % 2:
            return self._star(tuple(t.name for t in tokens[:-1:2]), Lexeme(Role.INPUT, "", tokens[0].start, False))
        lexemes, alias = split_alias(lexemes_of(self.context, within))
        name = unquoted(alias[0].text) if alias else own_name(lexemes, self._has_column)
        self.failed = self.failed or len(alias) > 1
        known = self.expression(lexemes)
        if name is not None:
            self.aliases.add(self.context.fold(name))
        return [(name, known)]

    def _star(self, qualifier: tuple[str, ...], like: Lexeme) -> list[tuple[str | None, Lexemes]]:
        columns = self.inner.star(qualifier)
        if columns is None or any(c.name.startswith("\0") for c in columns):
            self.failed = True
            return []
        return [(c.name, (input_lexeme(c.internal, like),)) for c in columns]


def joined(
    left: Relation, rows: Rows, names: Names, prefix: str, qualifier: str
) -> tuple[Relation, tuple[Visible, ...]]:
    """Return each row of the left side beside the rows of the subquery for it.

    Args:
        left: The left side.
        rows: The subquery.
        names: Hands out column names.
        prefix: What its columns begin with here.
        qualifier: The subquery's alias; empty without one.
    """
    columns, items = _columns(rows, names, prefix, qualifier)
    pairs: Relation = Join(left, rows.relation, rows.condition)
    if isinstance(rows.relation, Values):
        pairs = left if rows.condition is None else Filter(left, rows.condition)
    return Project(pairs, (*identity(left.columns), *items)), columns


def padded(
    left: Relation,
    rows: Rows,
    names: Names,
    prefix: str,
    qualifier: str,
    on: Callable[[tuple[Visible, ...]], Scalar | None],
) -> tuple[Relation, tuple[Visible, ...]] | None:
    """Return the same, with NULLs beside a row of the left side without partners.

    None where an item reads the left side.

    Args:
        left: The left side.
        rows: The subquery.
        names: Hands out column names.
        prefix: What its columns begin with here.
        qualifier: The subquery's alias; empty without one.
        on: The join's own condition, given the subquery's columns.
    """
    columns, items = _columns(rows, names, prefix, qualifier)
    if isinstance(rows.relation, Values):
        beside = Project(left, (*identity(left.columns), *items))
        return _where_met(beside, left, items, all_of(filter(None, (rows.condition, on(columns))))), columns
    own = set(rows.relation.columns)
    if any(not value.columns <= own for _, value in items):
        return None
    kept = [] if rows.condition is None else [name for name in rows.relation.columns if name in rows.condition.columns]
    right = Project(rows.relation, (*identity(tuple(kept)), *items))
    both = all_of(part for part in (rows.condition, on(columns)) if part is not None)
    return OuterJoin(left, right, both or TRUE), columns


def _where_met(beside: Relation, left: Relation, items: list[tuple[str, Scalar]], condition: Scalar | None) -> Relation:
    """Return rows beside the one row of a subquery without FROM.

    NULLs where the condition is not true.
    """
    if condition is None or condition.sql.upper() == TRUE.sql.upper():
        return beside
    met = ((name, compose("CASE WHEN {c} THEN {v} END", c=condition, v=column(name))) for name, _ in items)
    return Project(beside, (*identity(left.columns), *met))


def _columns(
    rows: Rows, names: Names, prefix: str, qualifier: str
) -> tuple[tuple[Visible, ...], list[tuple[str, Scalar]]]:
    internal = [names.take(f"{prefix}.{name or i}") for i, (name, _) in enumerate(rows.items, 1)]
    visible = tuple(
        Visible((qualifier,) if qualifier else (), name or f"\0{i}", own)
        for i, ((name, _), own) in enumerate(zip(rows.items, internal, strict=True))
    )
    return visible, [(own, scalar(lexemes)) for own, (_, lexemes) in zip(internal, rows.items, strict=True)]
