"""From a query's tree to programs that keep its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.algebra.relations import Empty, Relation, TopK
from headrace.algebra.tree import sources
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.append_only import only_gains
from headrace.ivm.change import Change
from headrace.ivm.consolidate import consolidate
from headrace.ivm.program import DeltaProgram, FullProgram, TableChange
from headrace.ivm.query_root import root_of
from headrace.ivm.rules import partitions, recursive, top_k
from headrace.names import TableName
from headrace.optimizer.auxiliary_views import inner_aggregates, inner_recursion, top_groups, top_k_buffer
from headrace.optimizer.common_subexpressions.shared_steps import share
from headrace.optimizer.semijoin_reduction import partners


def companion_relation(tree: Relation, types: Mapping[str, str] | None = None) -> Relation | None:
    """The companion a query needs, computed from nothing; None when it needs none."""
    return full_program(tree, types).companion


def companion_types(
    tree: Relation, types: Mapping[str, str], types_of: Callable[[Relation], Mapping[str, str]]
) -> Mapping[str, str]:
    """Types of the companion's columns that its programs must know.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
        types_of: Types of a relation's columns by name.
    """
    below = inner_aggregates.kept_below(tree, types)
    return inner_aggregates.part_types(_own(tree), below, types_of) if below else {}


def full_program(tree: Relation, types: Mapping[str, str] | None = None) -> FullProgram:
    """How to compute a query's stored tables from nothing; arguments as for `delta_program`."""
    below = inner_aggregates.kept_below(tree, types or {})
    return inner_aggregates.full(tree, _own(tree), below, types or {}) if below else _own(tree)


def _own(tree: Relation) -> FullProgram:
    """What the root keeps, and what follows from that."""
    below = inner_recursion.recursion_below(tree)
    if below is not None:
        return inner_recursion.full(tree, below)
    groups = top_groups.grouped(tree)
    if groups is not None and isinstance(tree, TopK):
        return top_groups.full(tree, groups)
    if isinstance(tree, TopK) and top_k_buffer.reserved(tree):
        return top_k_buffer.full(tree)
    root = root_of(tree)
    return root_aggregate.full(root) if root else FullProgram()


def delta_program(
    tree: Relation,
    changed: frozenset[TableName],
    appended: frozenset[TableName] = frozenset(),
    *,
    sizes: Mapping[TableName, int] | None = None,
    companion_rows: int = 0,
    ansi: bool = True,
    types: Mapping[str, str] | None = None,
) -> DeltaProgram | None:
    """How a query's stored tables follow a change.

    Args:
        tree: The query.
        changed: Sources that changed.
        appended: Those among them that only gained rows, each listed with weight 1.
        sizes: Rows in each source, as far as known.
        companion_rows: Rows in the companion, as far as known.
        ansi: Whether arithmetic fails on overflow or yields NULL.
        types: Types of the query's columns by name, as far as known.

    Returns:
        None when the result cannot have changed.
    """
    if changed.isdisjoint(sources(tree)):
        return None
    change = Change(changed, appended, sizes or {}, companion_rows, ansi, types or {})
    change.partners = partners(tree, change)
    below = inner_aggregates.kept_below(tree, change.types)
    program = inner_aggregates.follow(tree, _own(tree), below, change, _program) if below else _program(tree, change)
    return None if program is None else share(program, change.repeated)


def _program(tree: Relation, change: Change) -> DeltaProgram | None:
    below = inner_recursion.recursion_below(tree)
    if below is not None:
        return inner_recursion.follow(tree, below, change)
    root = root_of(tree)
    if root is not None:
        return root_aggregate.follow(root, change)
    groups = top_groups.grouped(tree)
    if groups is not None and isinstance(tree, TopK):
        return top_groups.follow(tree, groups, change)
    if isinstance(tree, TopK) and top_k_buffer.reserved(tree):
        return top_k_buffer.follow(tree, change)
    at_root = partitions.delta(tree, change) or top_k.at_root(tree, change) or recursive.at_root(tree, change)
    gains = at_root is None and only_gains(tree, change)
    delta = at_root or (change.of(tree) if gains else consolidate(change.of(tree)))
    if isinstance(delta, Empty):
        return None
    kept = change.keep("change", delta)
    return DeltaProgram(tuple(change.steps), TableChange(kept, None, gains=gains))
