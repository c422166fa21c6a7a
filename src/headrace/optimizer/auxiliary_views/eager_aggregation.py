"""Eager aggregation: groups rows before an outer join that are grouped again after it.

γ_B(γ_k(L ⟕_{a=f} R)), how many customers have how many orders: for the groups that a change of R touches, and for
which rows of L are padded, all of R would have to be read. With k ⊇ a columns of L, and calls over R alone,
γ_k(L ⟕_{a=f} R) is a function of γ_k(L; n) ⟕_{a=f} γ_f(R): a count is n times that of R's rows, or that of none, and
an extreme stays one. γ_f(R) is kept (`inner_aggregates`), so that R is read for its own change only, and its groups
tell which rows are padded. γ_k(L; n) is computed for the groups that ΔR touches; where the root looks at all of them,
as for a maximum, it is kept, too (`whole_reads`).

Groups of groups without an outer join are left as they are: reading the touched ones' rows once took 0.7 to 1.1 s where
keeping 200,000 to 1.5 M groups took 1.0 to 1.3 s (TPC-H at scale 1, line items by order and by part).
Source: Yan, Larson, Eager Aggregation and Lazy Aggregation, VLDB 1995 (eager count); for outer joins,
Galindo-Legaria, Joshi, Orthogonal Optimization of Subqueries and Aggregation, SIGMOD 2001, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.algebra.properties.equalities import equalities
from headrace.algebra.relations import Aggregate, AggregateCall, Filter, OuterJoin, Project, Relation
from headrace.algebra.scalar import Scalar, all_of, as_column, column, compose, conjuncts
from headrace.algebra.tree import transform
from headrace.ivm.query_root import root_of
from headrace.optimizer.auxiliary_views.keepable_groups import keepable, recurses
from headrace.optimizer.auxiliary_views.top_groups import grouped

_ROWS, _MET = "__hr_rows", "__hr_met"
"""Columns: rows of the left side in a group, and rows of the right that each of them meets."""


def grouped_again(tree: Relation) -> frozenset[Aggregate]:
    """Return the right side's groups, in a query that is as `aggregate_before_join` leaves it.

    None in any other.

    Args:
        tree: The query.
    """
    join = _below_root(tree)
    right = join.right if isinstance(join, OuterJoin) and join.unique and not join.full else None
    return frozenset([right] if isinstance(right, Aggregate) and right.keys else [])


def aggregate_before_join(tree: Relation, types: Mapping[str, str]) -> Relation:
    """Group both sides of an outer join before it, where the right groups can be kept.

    Args:
        tree: The query, types filled in.
        types: Types of its columns by name, as far as known.
    """
    if recurses(tree):
        return tree
    joined = _grouped_before_joined(tree)
    return joined if all(keepable(each, types) is not None for each in grouped_again(joined)) else tree


def _grouped_before_joined(tree: Relation) -> Relation:
    inner = _below_root(tree)
    if not isinstance(inner, Aggregate) or not inner.keys:
        return tree
    instead = _joined_groups(inner)
    return tree if instead is None else transform(tree, lambda node: instead if node == inner else node)


def _below_root(tree: Relation) -> Relation | None:
    """Return the root aggregate's input, below filters and projections."""
    root = root_of(tree) or grouped(tree)
    node = root.aggregate.input if root is not None else None
    while isinstance(node, Project | Filter):
        node = node.input
    return node


def _joined_groups(inner: Aggregate) -> Relation | None:
    below, names = inner.input, {name: name for name in inner.input.columns}
    while isinstance(below, Project):
        own = dict(below.items)
        # what is computed between has another value beside NULLs than NULL
        names = {name: read for name, old in names.items() if (read := as_column(own[old])) is not None}
        below = below.input
    if not isinstance(below, OuterJoin) or below.full:
        return None
    keys = {key: names.get(key, "") for key in inner.keys}
    calls = [_over_right(call, names, below.right) for call in inner.calls]
    if None in calls or not set(keys.values()) <= set(below.left.columns):
        return None
    return _between_groups(below, keys, tuple(filter(None, calls)))


def _over_right(call: AggregateCall, names: Mapping[str, str], right: Relation) -> AggregateCall | None:
    """Return a call over the rows of the right side; None for one that says more than these."""
    if call.function not in ("count", "min", "max") or not call.plain or call.filter is not None:
        return None
    if call.argument is None:
        return call
    read = names.get(as_column(call.argument) or "", "")
    return replace(call, argument=column(read)) if read in right.columns else None


def _between_groups(join: OuterJoin, keys: Mapping[str, str], calls: tuple[AggregateCall, ...]) -> Relation | None:
    """Return the groups of a join; None where they are not those of its two sides.

    Args:
        join: The join, types filled in.
        keys: The columns that tell the groups, each with the column of the left side that it is.
        calls: Over the right side.
    """
    types, mine, others = dict(join.types), join.left.columns, join.right.columns
    on = equalities(join.condition, mine, others)
    if not on or not all(a in keys.values() and types[a] == types[b] and not null_safe for a, b, null_safe in on):
        return None
    parts = conjuncts(join.condition)
    pairs = [part for part in parts if equalities(part, mine, others)]
    rest = [part for part in parts if part not in pairs]
    if not all(part.columns <= set(others) for part in rest):
        return None
    met = all_of(rest)
    rows = join.right if met is None else Filter(join.right, met)
    counted = [call for call in calls if call.argument is not None]
    if len(counted) < len(calls):
        counted.append(AggregateCall(_MET, "count", type="bigint"))
    left = Aggregate(join.left, tuple(dict.fromkeys(keys.values())), (AggregateCall(_ROWS, "count", type="bigint"),))
    right = Aggregate(rows, tuple(dict.fromkeys(b for _, b, _ in on)), tuple(counted))
    types |= {call.name: call.type or "" for each in (left, right) for call in each.calls}
    columns = (*left.columns, *right.columns)
    condition = all_of(pairs)
    assert condition is not None
    groups = OuterJoin(left, right, condition, types=tuple((name, types[name]) for name in columns), unique=True)
    items = [(key, column(name)) for key, name in keys.items()]
    return Project(groups, (*items, *((call.name, _beside(call)) for call in calls)))


def _beside(call: AggregateCall) -> Scalar:
    """Combine a call's result over the right side with the left group's row count."""
    if call.argument is None:
        return compose("{n} * COALESCE({m}, 1)", n=column(_ROWS), m=column(_MET))
    if call.function == "count":
        return compose("{n} * COALESCE({m}, 0)", n=column(_ROWS), m=column(call.name))
    return column(call.name)
