"""From a query's tree to programs that keep its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.algebra.relations import Empty, Relation, TopK
from headrace.algebra.tree import sources
from headrace.delta import accumulate, first_groups, kept_groups, kept_recursion, partitions, recursive, reserve, topk
from headrace.delta.change import Change
from headrace.delta.consolidate import consolidate
from headrace.delta.monotone import only_gains
from headrace.delta.partners import partners
from headrace.delta.program import DeltaProgram, FullProgram, TableChange
from headrace.delta.root import root_of
from headrace.delta.share import share
from headrace.names import TableName

LAYOUT = 12
"""Number of the rules' layout. Raise it when queries get other companions than before, or when what was refused is
maintained: stream tables that were defined under another number are defined and loaded again at their next refresh."""


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
    below = kept_groups.kept_below(tree, types)
    return kept_groups.part_types(_own(tree).companion, below, types_of) if below else {}


def full_program(tree: Relation, types: Mapping[str, str] | None = None) -> FullProgram:
    """How to compute a query's stored tables from nothing; arguments as for `delta_program`."""
    below = kept_groups.kept_below(tree, types or {})
    return kept_groups.full(tree, _own(tree), below, types or {}) if below else _own(tree)


def _own(tree: Relation) -> FullProgram:
    """What the root keeps, and what follows from that."""
    below = kept_recursion.recursion_below(tree)
    if below is not None:
        return kept_recursion.full(tree, below)
    groups = first_groups.grouped(tree)
    if groups is not None and isinstance(tree, TopK):
        return first_groups.full(tree, groups)
    if isinstance(tree, TopK) and reserve.reserved(tree):
        return reserve.full(tree)
    root = root_of(tree)
    return accumulate.full(root) if root else FullProgram()


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
    below = kept_groups.kept_below(tree, change.types)
    if below:
        program = kept_groups.follow(tree, _own(tree).companion, below, change, _program)
    else:
        program = _program(tree, change)
    return None if program is None else share(program, change.repeated)


def _program(tree: Relation, change: Change) -> DeltaProgram | None:
    below = kept_recursion.recursion_below(tree)
    if below is not None:
        return kept_recursion.follow(tree, below, change)
    root = root_of(tree)
    if root is not None:
        return accumulate.follow(root, change)
    groups = first_groups.grouped(tree)
    if groups is not None and isinstance(tree, TopK):
        return first_groups.follow(tree, groups, change)
    if isinstance(tree, TopK) and reserve.reserved(tree):
        return reserve.follow(tree, change)
    at_root = partitions.delta(tree, change) or topk.at_root(tree, change) or recursive.at_root(tree, change)
    gains = at_root is None and only_gains(tree, change)
    delta = at_root or (change.of(tree) if gains else consolidate(change.of(tree)))
    if isinstance(delta, Empty):
        return None
    kept = change.keep("change", delta)
    return DeltaProgram(tuple(change.steps), TableChange(kept, None, gains=gains))
