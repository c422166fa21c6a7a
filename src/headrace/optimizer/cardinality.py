"""Estimates the cardinality of relations and the seconds their operators take.

An estimate without statistics of columns: a condition keeps half of the rows, an equality or a pattern less; a join
finds one partner for each row of the side that has more (one without a condition, too: where tables are listed with
commas, what joins them stands further up); what is left out of one side is missing from the result in the same
proportion. That tells what matters most: whether a large table only is read, and looked up in something small, or also
exchanged and sorted. The constants were fitted to what the 22 queries of TPC-H took at scale 1 and 10 on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from headrace.algebra.moving import is_moving
from headrace.algebra.properties.equalities import hashable
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Repeat,
    Replicate,
    Round,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Union,
    Values,
)
from headrace.algebra.scalar import Scalar, conjuncts

VALUES_PER_SECOND = 200_000_000
"""Values of columns that are read."""
PROBED_PER_SECOND = 100_000_000
"""Rows looked up in something small."""
MATCHED_PER_SECOND = 5_000_000
"""Texts compared with a pattern, in which it is looked for."""
HASHED_PER_SECOND = 1_000_000
"""Rows of something small that is sent to every task."""
EXCHANGED_PER_SECOND = 2_500_000
"""Rows of two large sides of a join, and groups."""
GROUPED_PER_SECOND = 60_000_000
"""Rows that find their group."""
DECIMALS_PER_SECOND, OTHERS_PER_SECOND = 20_000_000, 200_000_000
"""Values that one aggregate takes in."""
OTHER_PER_SECOND = 1_500_000
"""Rows that are sorted, numbered or iterated over."""

MOVED_BY_TIME = 0.01
"""Of rows that a condition over time keeps at one time, how many it does not keep at the next."""

SENT_TO_ALL = 300_000
"""A side of so few rows is sent to every task."""
SENT_BYTES, ROW_BYTES, VALUE_BYTES = 64 * 1024 * 1024, 24, 8
"""Bytes of a hash table: of the largest that is sent, of a row, and of a value.

A side that follows from a change is sent up to that size, where the other side has no fewer rows.
"""
SENT_UNASKED = 100_000
"""A table of so few rows is sent to meet a change, rather than the change to meet it: Spark knows its size."""
KEPT_BY_CONDITION = 0.5
KEPT_BY_EQUALITY = 0.4
KEPT_BY_PATTERN = 0.1
KEPT_BY_GROUPING = 0.25
KEPT_BY_ANTI_JOIN = 0.5
"""Shares of rows that stay, for want of statistics of columns; see above."""


@dataclass(frozen=True, slots=True)
class Cardinality:
    """Estimated number of rows of a relation.

    Args:
        rows: As far as can be told.
        whole: How many it would have were nothing left out of the tables it reads.
    """

    rows: float
    whole: float

    @property
    def share(self) -> float:
        """Return the share of the rows that is left."""
        return min(1.0, self.rows / self.whole) if self.whole else 0.0


def sends_small_side(join: Relation, cardinality: Callable[[Relation], Cardinality]) -> bool:
    """Return whether the side of a join that rules expect to be small is sent to every task.

    The other side need not be exchanged then, however large it is.

    Args:
        join: The relation; False where it is no join of which a side is expected to be small.
        cardinality: Tells the cardinality of its sides.
    """
    match join:
        case Join(small_left=True):
            side, other = join.left, cardinality(join.right)
            if other.whole <= SENT_UNASKED:
                return False
        case SemiJoin(small_right=True) | LookupJoin(small_right=True):
            side, other = join.right, cardinality(join.left)
        case _:
            return False
    rows = cardinality(side).rows
    fits = rows * (ROW_BYTES + VALUE_BYTES * len(side.columns)) <= SENT_BYTES
    return rows <= SENT_TO_ALL or (fits and rows <= other.rows)


class Work:
    """Counts the seconds of relations; of a subtree that occurs several times once.

    Args:
        leaf: How many rows tables and earlier results have.
        groups: Of aggregates, by identity, how many groups they are known to have.
    """

    def __init__(self, leaf: Callable[[Scan | Stored], Cardinality], groups: Mapping[int, int] | None = None) -> None:
        self.seconds = 0.0
        self._groups = groups or {}
        self._leaf = leaf
        self._known: dict[int, tuple[Relation, Cardinality]] = {}
        self._rounds: dict[str, Cardinality] = {}

    def add(self, relation: Relation) -> Cardinality:
        """Add a relation's work, and return its estimated cardinality."""
        if isinstance(relation, Round):
            return self._rounds.get(relation.name, Cardinality(0, 0))
        if isinstance(relation, Recursive):
            self._rounds[relation.name] = self.add(relation.start)
        if id(relation) not in self._known:  # the relation is kept with it, so that no other one gets its identity
            self._known[id(relation)] = relation, self._counted(relation, [self.add(each) for each in relation.inputs])
        return self._known[id(relation)][1]

    def _counted(self, node: Relation, inputs: list[Cardinality]) -> Cardinality:
        match node:
            case Scan() | Stored():
                found = self._leaf(node)
                self.seconds += found.rows * len(node.columns) / VALUES_PER_SECOND
                return found
            case Empty():
                return Cardinality(0, 0)
            case Values():
                return Cardinality(len(node.rows), len(node.rows))
            case Filter():
                self.seconds += inputs[0].rows * node.condition.facts.patterns / MATCHED_PER_SECOND
                return _left_out(inputs[0], prod(map(_kept, conjuncts(node.condition))))
            case Join() | OuterJoin() | Existence() | SemiJoin() | LookupJoin():
                return self._joined(node, *inputs)
            case Aggregate():
                return self._grouped(node, inputs[0])
            case TopK(limit=int(limit)):
                self.seconds += inputs[0].rows / GROUPED_PER_SECOND
                kept = min(inputs[0].rows, limit + node.offset)
                return Cardinality(kept, kept)
            case _:  # the branches of a union may be parts of one relation
                rows = sum(each.rows for each in inputs)
                found = Cardinality(rows, max((rows, *(each.whole for each in inputs))))
                if not isinstance(node, Project | Union | Repeat | Replicate | Generate):
                    self.seconds += found.rows / OTHER_PER_SECOND
                return found

    def _grouped(self, node: Aggregate, rows: Cardinality) -> Cardinality:
        seconds = 1 / GROUPED_PER_SECOND + sum(map(_seconds_a_value, node.calls))
        self.seconds += rows.rows * seconds
        if not node.keys:
            return Cardinality(1, 1)
        kept = 1.0 if node.input.weighted else KEPT_BY_GROUPING  # of a change a group has few rows
        groups = Cardinality(rows.rows * kept, rows.whole * kept)
        if id(node) in self._groups:
            groups = Cardinality(self._groups[id(node)], self._groups[id(node)])
        self.seconds += groups.rows / EXCHANGED_PER_SECOND
        return groups

    def _joined(self, node: Relation, left: Cardinality, right: Cardinality) -> Cardinality:
        few, many = sorted((left.rows, right.rows))
        if is_moving(node):
            pass  # a condition
        elif isinstance(node, Join | OuterJoin | Existence) and not _is_by_key(node):
            self.seconds += few * many / PROBED_PER_SECOND  # every pair is looked at
        elif few <= SENT_TO_ALL or sends_small_side(node, self.add):
            self.seconds += few / HASHED_PER_SECOND + many / PROBED_PER_SECOND
        else:
            self.seconds += (few + many) / EXCHANGED_PER_SECOND
        match node:
            case LookupJoin():
                return Cardinality(max(left.rows, right.rows), max(left.whole, right.whole)) if node.whole else left
            case Existence() if is_moving(node):
                return _left_out(left, MOVED_BY_TIME if is_moving(node.left) else KEPT_BY_CONDITION)
            case SemiJoin() | Existence():
                return _left_out(left, KEPT_BY_ANTI_JOIN if node.anti else right.share)
        whole = max(left.whole, right.whole)
        rows = whole * left.share * right.share
        return Cardinality(max(rows, left.rows) if isinstance(node, OuterJoin) else rows, whole)


def _is_by_key(node: Join | OuterJoin | Existence) -> bool:
    """Return whether a join hashes.

    A join without a condition gets one from a filter further up.
    """
    if node.condition is None:
        return True
    sides = tuple(frozenset(each.columns) for each in node.inputs)
    between = (each for each in conjuncts(node.condition) if all(side & each.columns for side in sides))
    return any(map(hashable, between))


def _left_out(input_: Cardinality, kept: float) -> Cardinality:
    return Cardinality(input_.rows * kept, input_.whole)


def _kept(condition: Scalar) -> float:
    facts = condition.facts
    if facts.disjunctive or facts.negative:
        return KEPT_BY_CONDITION
    if facts.patterns:
        return KEPT_BY_PATTERN
    return KEPT_BY_EQUALITY if facts.equates else KEPT_BY_CONDITION


def _seconds_a_value(call: AggregateCall) -> float:
    decimals = (call.argument_type or "decimal").lower().startswith("decimal")
    if call.argument is not None and call.function != "count" and decimals:
        return 1 / DECIMALS_PER_SECOND
    return 1 / OTHERS_PER_SECOND
