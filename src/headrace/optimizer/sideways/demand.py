"""Finds which rows of each scan can matter to a result.

Of a join, only rows with the other side's keys matter; of the other side of an outer join, a semi-join or an anti-join,
those with the keys of the rows that are judged. Where a key's values come from is found by `Domains`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Scan,
    SemiJoin,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column, column, conjuncts, substitute
from headrace.algebra.tree import over, whole_sources
from headrace.names import TableName
from headrace.optimizer.sideways.value_domains import Domains, Names, keeps_all


@dataclass(frozen=True, slots=True)
class Demand:
    """Combinations of values of some columns to which rows are restricted; NULL is a value.

    Args:
        columns: The columns.
        values: A relation with as many columns, in this order.
    """

    columns: Names
    values: Relation


@dataclass(frozen=True, slots=True)
class Reading:
    """A scan, and the demands that restrict its rows.

    Args:
        scan: The scan.
        demands: By source column; each of them holds.
        conditions: What else the rows must satisfy, over source columns.
    """

    scan: Scan
    demands: tuple[Demand, ...]
    conditions: tuple[Scalar, ...]


Use = Callable[[Reading], Relation]
"""Returns what is put in the place of a scan."""

Demands = tuple[Demand, ...]
Conditions = tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Tracing:
    """Visits every scan of a relation with the demands on it, and may replace it.

    Args:
        domains: Finds where values come from.
        use: Given every scan that is asked for and of which only a part matters.
        asked: Tells of which sources scans are asked for; what reads none of them is not looked into.
    """

    domains: Domains
    use: Use
    asked: Callable[[TableName], bool]

    def visit(self, node: Relation, demands: Demands = (), conditions: Conditions = ()) -> Relation:
        """Return the relation, its scans replaced by what `use` returns.

        Args:
            node: The relation.
            demands: What matters of it.
            conditions: Conditions that stand directly above it.
        """
        if not self._reads(node):
            return node
        match node:
            case Scan():
                return self._scan(node, demands, conditions)
            case Filter():
                return over(node, self.visit(node.input, demands, conditions + conjuncts(node.condition)))
            case Project():
                own = dict(node.items)
                kept = {name: read for name, scalar in own.items() if (read := as_column(scalar)) is not None}
                return over(node, self.visit(node.input, _renamed(demands, kept)))
            case Replicate() | Generate():
                return over(node, self.visit(node.inputs[0], _within(demands, node.inputs[0].columns)))
            case Window():
                return over(node, self.visit(node.input, _within(demands, node.partition)))
            case Aggregate():
                return over(node, self.visit(node.input, _within(demands, node.keys)))
            case Union():
                own_names = [dict(zip(node.columns, each.columns, strict=True)) for each in node.branches]
                below = zip(node.branches, own_names, strict=True)
                return over(node, *(self.visit(branch, _renamed(demands, names)) for branch, names in below))
            case Join() | OuterJoin() | Existence() | SemiJoin() | LookupJoin():
                return self._join(node, demands, conditions)
        return over(node, *(self.visit(each) for each in node.inputs))

    def _reads(self, node: Relation) -> bool:
        """Return whether there is a scan to be asked for."""
        return any(map(self.asked, whole_sources(node)))

    def _scan(self, scan: Scan, demands: Demands, conditions: Conditions) -> Relation:
        if not demands:
            return scan
        fields = dict(scan.fields)
        own = tuple(substitute(c, {out: column(name) for out, name in fields.items()}) for c in conditions)
        return self.use(Reading(scan, _renamed(demands, fields), own))

    def _join(
        self, join: Join | OuterJoin | Existence | SemiJoin | LookupJoin, demands: Demands, conditions: Conditions
    ) -> Relation:
        of_left, of_right = _within(demands, join.left.columns), _within(demands, join.right.columns)
        if keeps_all(join):
            return over(join, *map(self.visit, join.inputs))
        equal = self.domains.linked(join)
        inner = isinstance(join, Join)
        # rows of the left side stay or go by their partners; those without any, too, unless only they go
        both = inner or (isinstance(join, SemiJoin | Existence) and not join.anti)
        above = conditions if isinstance(join, SemiJoin) else ()
        left, right = join.inputs
        if self._reads(join.left):
            implied = self._across(join.right, of_right, tuple((b, a) for a, b in equal)) if both else ()
            left = self.visit(join.left, of_left + implied, above)
        if self._reads(join.right):
            implied = self._across(join.left, of_left, equal)
            right = self.visit(join.right, of_right + implied if inner else implied)
        return over(join, left, right)

    def _across(self, side: Relation, demands: Demands, equal: tuple[tuple[str, str], ...]) -> Demands:
        """Return demands on one side of a join implied by the other side's.

        All pairs of equal columns together, else each by itself.
        """
        pairs = tuple(dict(equal).items())
        for chosen in (pairs, *((pair,) for pair in pairs)) if pairs else ():
            here = tuple(a for a, _ in chosen)
            known = next((d.values for d in demands if d.columns == here), None)
            values = known or self.domains.of(side, here)
            if values is not None and len({b for _, b in chosen}) == len(chosen):
                return (Demand(tuple(b for _, b in chosen), values),)
        return ()


def _within(demands: Demands, columns: Names) -> Demands:
    return tuple(demand for demand in demands if set(demand.columns) <= set(columns))


def _renamed(demands: Demands, names: dict[str, str]) -> Demands:
    """Return demands below a renaming, as far as their columns are there, each another one."""
    known = [d for d in demands if set(d.columns) <= names.keys()]
    moved = [replace(d, columns=tuple(names[c] for c in d.columns)) for d in known]
    return tuple(d for d in moved if len(set(d.columns)) == len(d.columns))
