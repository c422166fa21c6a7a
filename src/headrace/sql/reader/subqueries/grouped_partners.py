"""EXISTS and IN over a subquery with outer columns that groups its rows.

With GROUP BY, the subquery's rows get keys that say which outer rows they are for (`decorrelation`), and are grouped
for each key by itself: groups that HAVING leaves are partners like any other rows. Without GROUP BY there is one row
for each outer row, if HAVING leaves it: `EXISTS (SELECT f FROM R WHERE p HAVING h)` is the value of h over the rows
with p, and `x IN (SELECT f …)` is `h AND x = f`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.relations import Project
from headrace.algebra.scalar import column
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context, Ctes
from headrace.sql.reader.names.resolve import lexemes_of
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, in_brackets, input_lexeme, scalar, split_alias
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.select.windows import has_window
from headrace.sql.reader.subqueries.correlation import (
    Filtered,
    Inner,
    Rows,
    block,
    refuse,
    related,
    understood,
)
from headrace.sql.reader.subqueries.decorrelation import matched
from headrace.sql.reader.subqueries.existence_only import decides_rows
from headrace.sql.reader.syntax.query_shape import Query, Range, Select

UNEQUAL = "It reads outer columns whose equal values can be told apart, such as floats: 0.0 and -0.0."
"""The reason why a subquery with outer columns is refused."""

_GROUPS = "A subquery that reads outer columns and groups its rows is maintained where it reads them in WHERE only."


def groups(query: Query) -> Select | None:
    """Return the block of a query that groups by expressions; None for any other."""
    body = block(query)
    plain = body is not None and body.group is not None and not (body.extras or body.group.extras)
    return body if plain and body is not None and body.group and (body.group.all or body.group.items) else None


def partners(context: Context, body: Select, ctes: Ctes, outer: Rows, lexeme: Lexeme, filtered: Filtered) -> Inner:
    """Return the groups of a subquery, and the conditions by which outer rows find theirs.

    Args:
        context: The subquery's.
        body: The subquery, which groups its rows.
        ctes: The common table expressions in sight.
        outer: The rows it is evaluated for.
        lexeme: Where it stands.
        filtered: Applies the conditions that concern the subquery's rows alone.

    Raises:
        RefusedError: It is not maintained.
    """
    found, conditions = related(context, body, ctes, outer, lexeme, filtered)
    match = matched(context, outer.relation, found.relation, conditions, outer.names)
    if match is None:
        refuse(context, lexeme, "correlated subquery", UNEQUAL)
    assert match is not None
    keys = tuple(outer.names.take("key") for _ in match.keys)
    named = tuple((name, scalar(key)) for name, key in zip(keys, match.keys, strict=True))
    keyed = Project(match.inner, (*identity(found.relation.columns), *named))
    before = len(context.findings.refusals) + len(context.findings.doubts)
    output = context.read_divided(context, ctes, replace(body, where=None), keyed, found.scope, keys)
    if output.opaque or len(context.findings.refusals) + len(context.findings.doubts) > before:
        refuse(context, lexeme, "correlated subquery", _GROUPS)
    fresh = {name: outer.names.take(name) for name in output.relation.columns}
    right = Project(output.relation, tuple((new, column(old)) for old, new in fresh.items()))
    shown = [(input_lexeme(name, lexeme),) for name in fresh.values()]
    equal = Lexeme(Role.OPERATOR, "<=>" if match.nulls else "=", lexeme.at, True)
    first = len(shown) - len(keys)
    pairs = zip(match.theirs, shown[first:], strict=True)
    rows = replace(found, relation=right)
    return Inner(rows, tuple((*in_brackets(theirs), equal, *own) for theirs, own in pairs), tuple(shown[:first]))


# one row for each outer row


def one_row(context: Context, query: Query) -> Select | None:
    """Return the block of a query that is an aggregate without GROUP BY; None for any other."""
    body = block(query)
    if body is None or body.group is not None or body.extras:
        return None
    asked = (*body.items, *(() if body.having is None else (body.having,)))
    return body if any(has_aggregate(lexemes_of(context, within)) for within in asked) else None


def one_row_met(
    context: Context,
    body: Select,
    ctes: Ctes,
    outer: Rows,
    lexeme: Lexeme,
    filtered: Filtered,
    asked: tuple[Lexemes, ...],
    value: Callable[[Inner], Lexemes],
) -> Lexemes:
    """Return a condition: the one row is there and equals what is asked for.

    Args:
        context: The subquery's.
        body: The subquery.
        ctes: The common table expressions in sight.
        outer: The rows it is evaluated for; get columns.
        lexeme: Where it stands.
        filtered: Applies the conditions that concern the subquery's rows alone.
        asked: What IN looks for; nothing for EXISTS.
        value: Returns the value of an aggregate over the subquery's rows, for each outer row.

    Raises:
        RefusedError: It is not maintained.
    """
    word = Lexeme(Role.OPERATOR, "", lexeme.at, True)
    found, conditions = related(context, body, ctes, outer, lexeme, filtered)
    if asked and len(asked) != len(body.items):
        refuse(context, lexeme, lexeme.parts[0], "IN compares another number of values than the subquery has columns.")

    if not asked and decides_rows(context, body):
        refuse(context, lexeme, "correlated subquery", _GROUPS)

    def over(within: Range) -> Lexemes:
        lexemes, _ = split_alias(lexemes_of(context, within))
        names = [each.parts for each in lexemes if each.role is Role.NAME and not found.scope.knows(each.parts)]
        if has_subquery(lexemes) or has_window(lexemes) or any(map(outer.scope.knows, names)):
            refuse(context, lexeme, "correlated subquery", _GROUPS)
        known = understood(context, lexemes, found.scope)
        if has_aggregate(known):
            return value(Inner(found, conditions, (known,)))
        if any(each.role is Role.INPUT for each in known):
            refuse(context, lexeme, "correlated subquery", _GROUPS)
        return known  # a constant

    parts: list[Lexemes] = []
    if body.having is not None:
        parts.append((*in_brackets(over(body.having)), *_words(lexeme, "IS", "TRUE")))
    for each, within in zip(asked, body.items, strict=False):
        # by the types that IN compares in, which are not always those of =
        parts.append((*in_brackets(each), replace(word, text="IN"), *in_brackets(over(within))))
    if not parts:
        return (Lexeme(Role.LITERAL, "TRUE", lexeme.at, True),)
    joined = list(in_brackets(parts[0]))
    for part in parts[1:]:
        joined += [replace(word, text="AND"), *in_brackets(part)]
    return in_brackets(tuple(joined))


def _words(like: Lexeme, *texts: str) -> Lexemes:
    roles = {"TRUE": Role.LITERAL}
    return tuple(Lexeme(roles.get(text, Role.OPERATOR), text, like.at, True) for text in texts)
