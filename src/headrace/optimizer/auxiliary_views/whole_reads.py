"""Finds inner aggregates that a refresh would have to compute over all their input.

Rules ask for an input as it was and as it is. Mostly they ask for the rows that have some keys, which are pushed down
to the sources. Where groups are asked for by something that does not tell their keys, all of them are computed, twice:
behind a value of one row, behind a condition that is no equality, by a sum or a maximum of them all. This follows what
the rules will ask, from the result down; where it cannot tell, it takes everything to be asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from headrace.algebra.joins import at_most_one_row, flatten
from headrace.algebra.properties.equalities import equalities, implied
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Replicate,
    TopK,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column
from headrace.algebra.tree import sources
from headrace.ivm.aggregates.accumulators import plan
from headrace.ivm.query_root import root_of
from headrace.optimizer.auxiliary_views.top_groups import grouped

Asked = frozenset[str]
"""The columns by whose values rows are asked for; none: all rows are."""

EVERYTHING: Asked = frozenset()


def read_whole(tree: Relation, types: Mapping[str, str], *, first_rows_kept: bool) -> frozenset[Aggregate]:
    """Return inner aggregates read as a whole, without the one the root keeps.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
        first_rows_kept: Whether the companion keeps what ORDER BY … LIMIT at the root chooses from.
    """
    root = root_of(tree) or grouped(tree)
    reader = _Reader(root.aggregate if root is not None else None, types, first_rows_kept)
    reader.visit(tree, frozenset(), at_root=True)
    return frozenset(reader.whole)


class _Reader:
    """Walks down the tree with the columns by which each node is looked up."""

    def __init__(self, kept: Aggregate | None, types: Mapping[str, str], first_rows_kept: bool) -> None:
        self.kept = kept
        self.types = types
        self.first_rows_kept = first_rows_kept
        self.whole: set[Aggregate] = set()

    def visit(self, node: Relation, asked: frozenset[Asked], *, at_root: bool = False) -> None:
        """Visit a node that is looked up by some columns, in one way or several."""
        match node:
            case Project():
                values = {name: as_column(scalar) for name, scalar in node.items}
                self.visit(node.input, frozenset(_renamed(each, values) for each in asked), at_root=at_root)
            case Filter() | Replicate():
                self.visit(node.inputs[0], _among(asked, node.inputs[0]), at_root=at_root)
            case Generate():
                self.visit(node.input, _among(asked, node.input))
            case Union():
                for branch in node.branches:
                    places = dict(zip(node.columns, branch.columns, strict=True))
                    self.visit(branch, frozenset(frozenset(places[name] for name in each) for each in asked))
            case Join():
                self._join(node, asked)
            case OuterJoin() | Existence():
                self._sides(node, asked)
            case Aggregate():
                self._aggregate(node, asked)
            case Window():
                own = frozenset(node.partition)
                inner = {own, *(each if each and each <= own else EVERYTHING for each in asked)}
                self.visit(node.input, frozenset(inner))
            case TopK():
                seldom = at_root and self.first_rows_kept
                self.visit(node.input, frozenset() if seldom else frozenset({EVERYTHING}), at_root=at_root)
            case Recursive():
                pass
            case _:
                for each in node.inputs:
                    self.visit(each, frozenset({EVERYTHING}))

    def _join(self, join: Join, asked: frozenset[Asked]) -> None:
        inputs, conditions = flatten(join)
        conditions += implied(conditions, inputs, self.types)
        equals = _equals(conditions, inputs)
        values = {place for place, each in enumerate(inputs) if at_most_one_row(each)}
        read = [bool(sources(each)) for each in inputs]
        for place, each in enumerate(inputs):
            # when a value changes every row is looked at again, and what is joined to it by key, by key
            equal = {frozenset(by) for other, by in equals[place].items() if other not in values}
            met = (equal or {EVERYTHING}) if any(read[:place] + read[place + 1 :]) else set[Asked]()
            inner = {_inside(by, each, equal) for by in asked}
            self.visit(each, frozenset(met | inner))

    def _sides(self, node: OuterJoin | Existence, asked: frozenset[Asked]) -> None:
        for side, other in ((node.left, node.right), (node.right, node.left)):
            by = frozenset(a for a, _, _ in equalities(node.condition, side.columns, other.columns))
            equal = {by} if by else set[Asked]()
            met = equal or {EVERYTHING}
            inner = {_inside(by, side, equal) for by in asked}
            self.visit(side, frozenset((met if sources(other) else set()) | inner))

    def _aggregate(self, node: Aggregate, asked: frozenset[Asked]) -> None:
        own, steps = frozenset(node.keys), plan(node)
        found = {each & own for each in asked}
        if node is not self.kept and (EVERYTHING in found or (not own and sources(node))):
            self.whole.add(node)
        if (node is self.kept or node in self.whole) and not steps.recomputed:
            # only the groups that lose their extreme are looked at
            below = {own} if any(a.extreme for a in steps.accumulators) else set[Asked]()
        else:
            below = {own, *found}
        self.visit(node.input, frozenset(below))


def _renamed(asked: Asked, values: dict[str, str | None]) -> Asked:
    found = [values[name] for name in asked]
    return frozenset(name for name in found if name is not None) if None not in found else EVERYTHING


def _among(asked: frozenset[Asked], node: Relation) -> frozenset[Asked]:
    there = set(node.columns)
    return frozenset(each if each <= there else EVERYTHING for each in asked)


def _inside(asked: Asked, side: Relation, equal: set[Asked]) -> Asked:
    """Return the columns by which one side of a join is looked up.

    They are its own, or those that equal its partner's.
    """
    own = asked & set(side.columns)
    if own or not asked:
        return own
    return next(iter(sorted(equal, key=sorted)), EVERYTHING)


def _equals(conditions: Iterable[Scalar], inputs: Sequence[Relation]) -> list[defaultdict[int, set[str]]]:
    """Return, for each input of a join, its columns equated to another input's."""
    home = {name: place for place, each in enumerate(inputs) for name in each.columns}
    found = [defaultdict[int, set[str]](set) for _ in inputs]
    for a, b, _ in (pair for each in conditions for pair in equalities(each, home, home)):
        if home[a] != home[b]:
            found[home[a]][home[b]].add(a)
            found[home[b]][home[a]].add(b)
    return found
