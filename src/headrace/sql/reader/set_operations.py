"""UNION, INTERSECT and EXCEPT as unions and aggregates.

Both sides of INTERSECT and EXCEPT go into one union whose rows say where they come from; grouped by all columns, a row
that the left side has l times and the right side r times is in the result min(l, r) times (INTERSECT ALL),
max(l − r, 0) times (EXCEPT ALL), once if l, r > 0 (INTERSECT), once if l > 0 and r = 0 (EXCEPT). Grouping takes NULL
for a value like any other, as set operations do.
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, AggregateCall, Filter, Project, Relation, Replicate, SemiJoin, Union
from headrace.algebra.scalar import column, compose, equals, literal
from headrace.algebra.tree import identity
from headrace.sql.reader.names.column_names import Names

_COPIES = {"INTERSECT": "LEAST({l}, {r})", "EXCEPT": "{l} - {r}"}
_PRESENT = {"INTERSECT": "{l} > 0 AND {r} > 0", "EXCEPT": "{l} > 0 AND {r} = 0"}


def combined(operator: str, left: Relation, right: Relation, *, keep_copies: bool) -> Relation:
    """Return two relations with equally many columns as one, its columns named after the left.

    Args:
        operator: `UNION`, `INTERSECT` or `EXCEPT`.
        left: One side.
        right: The other.
        keep_copies: Whether ALL was written.
    """
    if operator == "UNION":
        # what stands in brackets on the right has types of its own
        union = Union((*_branches(left), right))
        return union if keep_copies else Aggregate(union, union.columns)
    return _matched(operator, left, right, keep_copies=keep_copies)


def remaining(left: Relation, right: Relation, *, keep_copies: bool) -> Relation:
    """Return EXCEPT for who asks where columns come from: from the left side alone.

    Args:
        left: One side.
        right: The other.
        keep_copies: Whether ALL was written; how many copies remain is not told then.
    """
    rows = SemiJoin(left, right, tuple(zip(left.columns, right.columns, strict=True)), anti=True)
    return rows if keep_copies else Aggregate(rows, rows.columns)


def _branches(relation: Relation) -> tuple[Relation, ...]:
    return relation.branches if isinstance(relation, Union) else (relation,)


def _matched(operator: str, left: Relation, right: Relation, *, keep_copies: bool) -> Relation:
    names = Names()
    for name in (*left.columns, *right.columns):
        names.take(name)
    side, in_left, in_right, copies = (names.take(name) for name in ("side", "in_left", "in_right", "copies"))
    both = Union((_from_side(left, side, 1), _from_side(right, side, 2)))
    calls = (_count(in_left, side, 1), _count(in_right, side, 2))
    counted = Aggregate(both, left.columns, calls)
    parts = {"l": column(in_left), "r": column(in_right)}
    if not keep_copies:
        return Project(Filter(counted, compose(_PRESENT[operator], **parts)), identity(left.columns))
    return Replicate(Project(counted, (*identity(left.columns), (copies, compose(_COPIES[operator], **parts)))), copies)


def _from_side(relation: Relation, side: str, number: int) -> Project:
    return Project(relation, (*identity(relation.columns), (side, literal(number))))


def _count(name: str, side: str, number: int) -> AggregateCall:
    return AggregateCall(name, "count", filter=equals(column(side), literal(number)))
