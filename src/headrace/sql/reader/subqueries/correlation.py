"""Reads subqueries of expressions, uncorrelated ones apart, and finds outer references.

A name means a column of the subquery if there is one, else of the query around it. So a subquery that can be read by
itself has no outer references; of any other, FROM is read, and those conditions of WHERE that read outer columns are
set apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headrace.algebra.relations import Project, Relation
from headrace.algebra.scalar import Scalar, as_column, column
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context, Ctes, Output
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, of_one_row, resolved
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.scalars.booleans import conjuncts, has_subquery
from headrace.sql.reader.scalars.lexemes import SCALAR, Lexeme, Lexemes, Role, split_alias
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.select.group_by_all import without_all
from headrace.sql.reader.select.windows import has_window
from headrace.sql.reader.syntax.query_shape import Query, Range, Select
from headrace.sql.reader.tables.from_reader import FromReader
from headrace.sql.reader.tables.generators import as_generator, is_generator, more_than_views

DEEPEST = 5
"""Deepest nesting of subqueries: each is read twice, with and without outer references."""


class RefusedError(Exception):
    """The reason is in the findings; the tree is thrown away."""


@dataclass
class Rows:
    """Rows that subqueries are joined to.

    Args:
        relation: The rows so far.
        scope: What names mean.
        names: Hands out columns that are free here, and in the queries around.
        values: Scalar subqueries whose value is a column already, by their place.
    """

    relation: Relation
    scope: Scope
    names: Names
    values: dict[Range, Lexemes] = field(default_factory=dict)

    def fresh(self, wanted: str, value: Scalar) -> str:
        """Return a column that holds a value: itself, if it is a column already."""
        own = as_column(value)
        if own is not None:
            return own
        name = self.names.take(wanted)
        self.relation = Project(self.relation, (*identity(self.relation.columns), (name, value)))
        return name


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery with outer references.

    Args:
        rows: Its rows, before any condition with outer references.
        conditions: The conditions with outer references, all names resolved.
        items: Its select list, names resolved.
    """

    rows: Rows
    conditions: tuple[Lexemes, ...]
    items: tuple[Lexemes, ...]


def query_at(context: Context, ctes: Ctes, lexeme: Lexeme) -> Query:
    """Return the query that a lexeme stands for, its block without GROUP BY ALL over aggregates."""
    context.cursor.at = lexeme.tokens[0]
    return _without_all(context, ctes, context.cursor.parse_query())


def _without_all(context: Context, ctes: Ctes, query: Query) -> Query:
    body = query.body
    if query.ctes:  # its FROM may read them; with outer columns it is not maintained
        return query
    if isinstance(body, Query):
        return replace(query, body=_without_all(context, ctes, body))
    if not isinstance(body, Select) or body.source is None or body.group is None or not body.group.all:
        return query
    scope = FromReader(context.trial(), ctes).block(body).scope
    return replace(query, body=without_all(context, body, scope))


def deeper(context: Context, lexeme: Lexeme) -> Context:
    """Return the context of a subquery of an expression.

    Raises:
        RefusedError: It is nested too deep.
    """
    if context.depth >= DEEPEST:
        message = f"Subqueries are nested more than {DEEPEST} deep."
        refuse(context, lexeme, "nested subqueries", message)
    return replace(context, depth=context.depth + 1)


def refuse(context: Context, lexeme: Lexeme, construct: str, message: str | None = None) -> None:
    """Take down why a subquery is not maintained.

    Raises:
        RefusedError: always.
    """
    context.refuse(not_maintained(construct, context.place_of(lexeme.at), message))
    raise RefusedError


def alone(context: Context, query: Query, ctes: Ctes) -> Output | None:
    """Return the subquery read by itself; None when it has outer references.

    Raises:
        RefusedError: Something in it is not maintained.
    """
    trial = context.trial()
    output = trial.read_query(trial, query, ctes)
    if trial.findings.refusals:
        context.findings.refusals.extend(trial.findings.refusals)
        raise RefusedError
    if trial.findings.doubts:
        return None
    context.read_ctes.update(trial.read_ctes)
    return output


Filtered = Callable[[Rows, Lexemes], None]
"""Applies a condition without outer references, which may hold subqueries itself."""


def correlated(context: Context, query: Query, ctes: Ctes, outer: Rows, lexeme: Lexeme, filtered: Filtered) -> Inner:
    """Return the subquery with its outer references separated.

    Args:
        context: The subquery's.
        query: The subquery.
        ctes: The common table expressions in sight.
        outer: The rows it is evaluated for.
        lexeme: Where it stands.
        filtered: Applies the conditions that concern the subquery alone.

    Raises:
        RefusedError: It has another shape than SELECT … FROM … WHERE.
    """
    body = _plain(context, query, lexeme)
    rows, conditions = related(context, body, ctes, outer, lexeme, filtered)
    return Inner(rows, conditions, tuple(_item(context, item, rows.scope, lexeme) for item in body.items))


def related(
    context: Context, body: Select, ctes: Ctes, outer: Rows, lexeme: Lexeme, filtered: Filtered
) -> tuple[Rows, tuple[Lexemes, ...]]:
    """Return the rows of a subquery's FROM, and the conditions with outer references.

    Arguments and errors as for `correlated`; `body` is the subquery's block.
    """
    read = FromReader(context, ctes).block(body)
    if read.scope.opaque:
        raise RefusedError
    fresh = {c: outer.names.take(c) for c in read.relation.columns}
    visible = tuple(replace(c, internal=fresh[c.internal]) for c in read.scope.columns)
    renamed = Project(read.relation, tuple((new, column(old)) for old, new in fresh.items()))
    rows = Rows(renamed, replace(read.scope, columns=visible), outer.names)
    conditions: list[Lexemes] = []
    where = lexemes_of(context, body.where) if body.where else ()
    of_one_row(context, where, "a condition")
    for part in conjuncts(where) if where else ():
        told, reads_outer = _outer_names(context, part, rows.scope, outer.scope)
        if not reads_outer:
            filtered(rows, part)
        elif has_subquery(part):
            refuse(context, lexeme, "correlated subquery", "A condition reads outer columns beside another subquery.")
        else:
            conditions.append(understood(context, told, rows.scope))
    if not conditions:
        refuse(context, lexeme, "correlated subquery", "It reads outer columns elsewhere than in its own WHERE.")
    return rows, tuple(conditions)


def understood(context: Context, lexemes: Lexemes, scope: Scope) -> Lexemes:
    """Return the lexemes with every name resolved.

    Raises:
        RefusedError: One could not be.
    """
    known = resolved(context, lexemes, scope)
    if any(lexeme.role in (Role.NAME, Role.SUBQUERY) for lexeme in known):
        raise RefusedError
    return known


def _plain(context: Context, query: Query, lexeme: Lexeme) -> Select:
    body = plain(query)
    if body is None:
        message = "A subquery that reads outer columns is maintained when it is one SELECT, without LIMIT."
        refuse(context, lexeme, "correlated subquery", message)
    assert body is not None
    return body


def plain(query: Query) -> Select | None:
    """Return the block of a query that is no more than SELECT [DISTINCT] … FROM … WHERE.

    None for any other.
    """
    body = block(query)
    return None if body is None or body.group or body.having else body


def block(query: Query) -> Select | None:
    """Return the only block of a query that cuts nothing off.

    None for any other query, and without FROM.
    """
    body = query.body
    while isinstance(body, Query) and not body.ctes and not body.extras:
        body = body.body
    if query.ctes or query.recursive or not all(extra.harmless for extra in query.extras):
        return None
    return body if isinstance(body, Select) and body.source is not None and not more_than_views(body) else None


def _outer_names(context: Context, lexemes: Lexemes, inner: Scope, outer: Scope) -> tuple[Lexemes, bool]:
    """Return the lexemes with outer names resolved, and whether there was one."""
    out: list[Lexeme] = []
    found = False
    for lexeme in lexemes:
        if lexeme.role is Role.NAME and not inner.knows(lexeme.parts) and outer.knows(lexeme.parts):
            out.extend(resolved(context, (lexeme,), outer))
            found = True
        else:
            out.append(lexeme)
    return tuple(out), found


def _item(context: Context, within: Range, scope: Scope, lexeme: Lexeme) -> Lexemes:
    """Return a select item without its alias; empty for a star, which only EXISTS does not mind."""
    lexemes, _ = split_alias(lexemes_of(context, within))
    if len(lexemes) == 1 and lexemes[0].role is Role.STAR:
        return ()
    if has_window(lexemes) or is_generator(as_generator(lexemes)):
        refuse(context, lexeme, "correlated subquery", "It reads outer columns beside a window or generator.")
    if lexeme.parts[0] != SCALAR and has_aggregate(lexemes):
        refuse(context, lexeme, "correlated subquery", "It reads outer columns and calls an aggregate.")
    return understood(context, lexemes, scope)
