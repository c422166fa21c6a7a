"""Adds a column that says whether a row has a partner, by the partners' distinct keys.

`L ⟕ (δ π_k(R) × {true})` reads L once, however many such columns a query has; a semi-join beside an anti-join would
read it twice for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Aggregate, OuterJoin, Project, Relation
from headrace.algebra.scalar import TRUE, all_of
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, input_lexeme, scalar
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.subqueries.correlation import Rows
from headrace.sql.reader.subqueries.decorrelation import matched


def looked_up(
    context: Context, rows: Rows, right: Relation, conditions: Sequence[Lexemes], like: Lexeme
) -> Lexemes | None:
    """Add a column for a partner's existence; return it as a condition, or None.

    Args:
        context: Knows whom to ask for types.
        rows: The rows.
        right: Where partners are looked for.
        conditions: What partners fulfil.
        like: Where the subquery stands.
    """
    match = matched(context, rows.relation, right, conditions, rows.names) if conditions else None
    if match is None or match.nulls:
        return None
    keyed = Project(match.inner, tuple((rows.names.take("partner"), scalar(key)) for key in match.keys))
    if not all(equal_means_same(each.type) for each in types_in(context, keyed) or ()):
        return None
    flag = rows.names.take("exists")
    partners = Project(Aggregate(keyed, keyed.columns), (*identity(keyed.columns), (flag, TRUE)))
    asked = [rows.fresh("key", scalar(theirs)) for theirs in match.theirs]
    on = all_of(match.equal(own, key) for own, key in zip(asked, keyed.columns, strict=True))
    assert on is not None
    rows.relation = OuterJoin(rows.relation, partners, on)
    words = (("IS", Role.OPERATOR), ("NOT", Role.OPERATOR), ("NULL", Role.LITERAL))
    return (input_lexeme(flag, like), *(Lexeme(role, text, like.at, True) for text, role in words))
