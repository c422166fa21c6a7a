"""Leaves out groups that nothing is joined to.

L ⋈_{a=k} γ_k(R): only groups whose key is among the values of a matter. Where these are those of a filtered source that
did not change (of TPC-H q17, the parts of one brand and container, to whose line items their average is joined), a
change of R touches the groups that have one of these keys, and no other row of R is asked for. The same holds of the
side of an outer join that is not kept whole, and of what is only looked at for partners.
Source: semi-join reduction; as a rewriting of queries: Mumick, Finkelstein, Pirahesh, Ramakrishnan, Magic is Relevant,
SIGMOD 1990.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from headrace.algebra.properties.equalities import equal_alike
from headrace.algebra.relations import Aggregate, Existence, Filter, Join, OuterJoin, Project, Relation, Scan
from headrace.algebra.scalar import as_column, column
from headrace.algebra.tree import walk
from headrace.ivm.change import Change, Partners

Asked = Mapping[str, tuple[Relation, str]]
"""Columns of a side, each with the other side and the column there that equals it."""

SMALLER = 4
"""Factor by which the source that tells which groups matter must be smaller than their rows."""

_VALUE = "__hr_partner"


def restrict_groups(change: Change, tree: Relation) -> Change:
    """Restrict the delta rules to groups that something can be joined to.

    Args:
        change: Says what changed, and how large the sources are; nothing was asked of it yet.
        tree: The query.
    """
    return replace(change, partners=partners(tree, change))


def partners(tree: Relation, change: Change) -> Mapping[Aggregate, Partners]:
    """Return the aggregates of a query of which only some groups can matter.

    Each side's groups are bounded by the other side's sources alone, so that both sides of a join may be.

    Args:
        tree: The query.
        change: Says what changed, and how large the sources are.
    """
    return _partners(tree, change, change.touches)


def partners_at_any_time(tree: Relation, types: Mapping[str, str]) -> Mapping[Aggregate, Partners]:
    """Return aggregates of which only groups with partners in a filtered source matter.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    return _partners(tree, Change({}, frozenset(), types=types), lambda _: True)


def _partners(tree: Relation, change: Change, asked_for: Callable[[Aggregate], bool]) -> Mapping[Aggregate, Partners]:
    # of a relation that is read twice each reader asks for other groups
    occurs = Counter(node for node in walk(tree) if isinstance(node, Aggregate))
    found: dict[Aggregate, Partners] = {}
    for node in walk(tree):
        for side, asked in _sides(node, change):
            groups, names = _groups(side, asked)
            if groups is None or occurs[groups] > 1 or not asked_for(groups):
                continue
            small = tuple(
                (k, f) for k, (other, a) in names.items() if (f := _small_source(other, a, groups, change)) is not None
            )
            if small:
                found[groups] = small
    return found


def _sides(node: Relation, change: Change) -> Iterator[tuple[Relation, Asked]]:
    """Yield the sides of a join of which only partners of the other side matter."""
    if not isinstance(node, Join | OuterJoin | Existence) or (isinstance(node, OuterJoin) and node.full):
        return
    equal = _equal(node, change)
    yield node.right, {b: (node.left, a) for a, b in equal}
    if isinstance(node, Join):
        yield node.left, {a: (node.right, b) for a, b in equal}


def _equal(node: Join | OuterJoin | Existence, change: Change) -> list[tuple[str, str]]:
    """Return columns of both sides, of one type, that are equal in every pair.

    NULL equals nothing.
    """
    both = equal_alike(node.condition, node.left.columns, node.right.columns, change.types)
    return [(a, b) for a, b, null_safe in both if not null_safe]


def _groups(side: Relation, asked: Asked) -> tuple[Aggregate | None, Asked]:
    """Return a side's aggregate, and the keys by which it is looked up."""
    while isinstance(side, Project | Filter):
        if isinstance(side, Project):
            own = dict(side.items)
            asked = {name: where for out, where in asked.items() if (name := as_column(own[out])) is not None}
        side = side.input
    if not isinstance(side, Aggregate):
        return None, {}
    return side, {name: where for name, where in asked.items() if name in side.keys}


def _small_source(node: Relation, name: str, groups: Aggregate, change: Change) -> Relation | None:
    """Return a filtered source that has all values of a column, did not change, and is small.

    As a relation of one column.
    """
    match node:
        case Filter(input=Scan() as scan):
            fits = _is_small(scan, groups, change) and not change.touches(scan)
            return Project(node, ((_VALUE, column(name)),)) if fits else None
        case Project():
            read = as_column(dict(node.items)[name])
            return None if read is None else _small_source(node.input, read, groups, change)
        case Filter():
            return _small_source(node.input, name, groups, change)
        case Aggregate() if name in node.keys:
            return _small_source(node.input, name, groups, change)
        case OuterJoin() if not node.full and name in node.left.columns:
            return _small_source(node.left, name, groups, change)
        case Existence(anti=True):
            return _small_source(node.left, name, groups, change)
        case Join() | Existence():
            return _across(node, name, groups, change)
    return None


def _is_small(scan: Scan, groups: Aggregate, change: Change) -> bool:
    """Return whether a source is far smaller than the grouped relation; True if unknown."""
    if not change.sizes:
        return True
    rows = change.sizes.get(scan.source)
    return rows is not None and SMALLER * rows <= change.size(groups)


def _across(node: Join | Existence, name: str, groups: Aggregate, change: Change) -> Relation | None:
    """Return the same of a column of a join.

    Its own values, or those of a column that equals it.
    """
    equal = _equal(node, change)
    places = [(side, name) for side in node.inputs if name in side.columns and name in node.columns]
    places += [(node.right, b) for a, b in equal if a == name]
    places += [(node.left, a) for a, b in equal if b == name and isinstance(node, Join)]
    return next(
        (found for side, own in places if (found := _small_source(side, own, groups, change)) is not None), None
    )
