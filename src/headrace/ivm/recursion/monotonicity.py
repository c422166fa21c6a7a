"""Decides whether a query is monotone, and whether duplicates show in its result.

Projections, conditions, generators, inner joins, unions, DISTINCT and EXISTS are monotone: more rows in, no row less
out. The left side of an outer join and of NOT EXISTS is, too, as each of its rows is judged by itself; what it is
judged by must not move. Everything else is refused, also what happens to grow (INTERSECT, max over a threshold): what
is not proven here is not iterated.

A query keeps copies of what it reads outside of DISTINCT and EXISTS. Round a cycle that keeps copies everywhere, a row
that leads back to itself would come again in every round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Scan,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.text import call_text, window_text
from headrace.algebra.tree import sources
from headrace.errors import Place
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Shrinking:
    """A construct that is not monotone: it may lose rows when its input gains some.

    Args:
        construct: Its name in SQL words, with what it is about.
        reads: What moves below it.
        place: Where it stands in the query, if known.
    """

    construct: str
    reads: tuple[TableName, ...]
    place: Place | None = None


def shrinking(tree: Relation, moving: frozenset[TableName]) -> Shrinking | None:
    """Return the first construct that keeps a query from being monotone; None when it is.

    Args:
        tree: The query.
        moving: The sources that gain rows; the others stay as they are.
    """
    return next(_shrinking(tree, moving), None)


def _shrinking(node: Relation, moving: frozenset[TableName]) -> Iterator[Shrinking]:
    reads = tuple(source for source in sources(node) if source in moving)
    if not reads:
        return
    match node:
        case Scan() | Values() | Project() | Filter() | Generate() | Join() | Union() | Aggregate(calls=()):
            below = node.inputs
        case Existence(anti=False):
            below = node.inputs
        case OuterJoin(full=False) | Existence() if moving.isdisjoint(sources(node.inputs[1])):
            below = node.inputs[:1]
        case _:
            yield _named(node, reads)
            return
    for each in below:
        yield from _shrinking(each, moving)


def _named(node: Relation, reads: tuple[TableName, ...]) -> Shrinking:
    match node:
        case Aggregate(calls=calls):
            call = next((c for c in calls if c.place is not None), calls[0])
            if call.place is None and call.filter is not None and call.function == "count":
                return Shrinking("INTERSECT or EXCEPT", reads)
            return Shrinking(f"the aggregate {_bare(call_text(call))}", reads, call.place)
        case Window(calls=calls):
            return Shrinking(f"the window function {_bare(window_text(calls[0]))}", reads, calls[0].place)
        case TopK():
            return Shrinking("LIMIT or OFFSET", reads, node.place)
        case OuterJoin(full=True):
            return Shrinking("FULL JOIN", reads)
        case OuterJoin():
            return Shrinking("the optional side of an outer join", reads)
        case Existence():
            return Shrinking("NOT EXISTS, NOT IN or ANTI JOIN", reads)
        case Replicate():
            return Shrinking("INTERSECT ALL or EXCEPT ALL", reads)
    return Shrinking("WITH RECURSIVE", reads)


def _bare(sql: str) -> str:
    return sql.replace("`", "")


def copied(tree: Relation, moving: frozenset[TableName]) -> frozenset[TableName]:
    """Return those of the changed sources whose duplicates show in a monotone query.

    Under an aggregate, and on the right of a semi-join, it does not matter how often a row is there.

    Args:
        tree: The query.
        moving: The sources that gain rows.
    """
    match tree:
        case Scan():
            return frozenset({tree.source}) & moving
        case Aggregate():
            return frozenset()
        case Existence():
            return copied(tree.left, moving)
    return frozenset().union(*(copied(each, moving) for each in tree.inputs))
