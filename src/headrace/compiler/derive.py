"""Derives from a query's tree the programs that keep its stored tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from headrace.algebra.plain_values import plain_values
from headrace.algebra.relations import Empty, Project, Relation, Stored, TopK
from headrace.algebra.scalar import Scalar, column
from headrace.algebra.schema import Column
from headrace.algebra.tree import nodes, sources
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.append_only import only_inserts
from headrace.ivm.change import Change
from headrace.ivm.consolidate import consolidate
from headrace.ivm.program import DeltaProgram, FullProgram, Step, TableChange, free_name
from headrace.ivm.query_root import root_of
from headrace.ivm.rules import partitions, recursive, top_k
from headrace.ivm.rules.registry import RULES
from headrace.names import TableName
from headrace.optimizer.auxiliary_views import (
    companion_parts,
    inner_aggregates,
    inner_recursion,
    top_groups,
    top_k_buffer,
)
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer import Optimizer

Types = Mapping[str, str]


def companion_types(
    tree: Relation, views: AuxiliaryViews, types_of: Callable[[Relation], Mapping[str, str]]
) -> Mapping[str, str]:
    """Return types of the companion's columns that its programs need.

    Args:
        tree: The query.
        views: What the companion keeps.
        types_of: Types of a relation's columns by name.
    """
    below = views.aggregates
    return companion_parts.part_types(_own(tree, views), below, types_of) if below else {}


def full_program(tree: Relation, views: AuxiliaryViews, types: Types) -> FullProgram:
    """Derive how a query's stored tables are computed from nothing.

    Args:
        tree: The query.
        views: What the companion keeps.
        types: Types of the query's and the companion's columns by name, as far as known.
    """
    own = _own(tree, views)
    return inner_aggregates.full(tree, own, views.aggregates, types) if views.aggregates else own


def _own(tree: Relation, views: AuxiliaryViews) -> FullProgram:
    """Compute what is kept for the root, and what follows from that."""
    if views.recursion is not None:
        return inner_recursion.full(tree, views.recursion)
    if views.groups is not None and isinstance(tree, TopK):
        return top_groups.full(tree, views.groups)
    if views.buffer and isinstance(tree, TopK):
        return top_k_buffer.full(tree)
    root = root_of(tree)
    return root_aggregate.full(root) if root else FullProgram()


def delta_program(
    tree: Relation,
    views: AuxiliaryViews,
    changed: frozenset[TableName],
    appended: frozenset[TableName],
    optimizer: Optimizer,
    *,
    sizes: Mapping[TableName, int],
    companion_rows: int,
    whole: bool,
    ansi: bool,
    types: Types,
    exact: Set[str] = frozenset(),
    output: Sequence[Column] = (),
) -> DeltaProgram | None:
    """Derive how a query's stored tables follow a change.

    Args:
        tree: The query.
        views: What the companion keeps.
        changed: Sources that changed.
        appended: Those among them that only gained rows, each listed with weight 1.
        optimizer: Runs the passes over the program that the rules give.
        sizes: Rows in each source, as far as known.
        companion_rows: Rows in the companion, as far as known.
        whole: Whether all of them may be held, as of `Change`.
        ansi: Whether arithmetic fails on overflow or yields NULL.
        types: Types of the query's and the companion's columns by name, as far as known.
        exact: Those of the query's columns, by name, whose equal values are known to be the same.
        output: The columns of its result.

    Returns:
        None when the result cannot have changed.
    """
    if changed.isdisjoint(sources(tree)):
        return None
    change = optimizer.rules(Change(RULES, changed, appended, sizes, companion_rows, whole, ansi, types, exact), tree)

    def program(tree: Relation, change: Change) -> DeltaProgram | None:
        return _program(tree, views, change)

    if views.aggregates:
        found = inner_aggregates.follow(tree, _own(tree, views), views.aggregates, change, program)
    else:
        found = program(tree, change)
    return None if found is None else _stored(optimizer.derived(found, change.repeated), plain_values(output))


def _stored(program: DeltaProgram, plain: Mapping[str, Scalar]) -> DeltaProgram:
    """Have the change of a result written as it is stored.

    Args:
        program: The program.
        plain: Columns of the result that are stored otherwise than computed, and how.
    """
    if not plain:
        return program

    def stored(rows: Relation) -> Relation:
        return Project(rows, tuple((name, plain.get(name, column(name))) for name in rows.columns))

    change, state = program.state.change, program.state.rewritten(stored)
    if not isinstance(change, Stored):
        return replace(program, state=state)
    read = [r for step in program.steps for r in step.relations]
    read += [] if program.companion is None else program.companion.relations
    if change not in (node for each in read for node in nodes(each)):
        steps = tuple(s if s.name != change.name else replace(s, relation=stored(s.relation)) for s in program.steps)
        return replace(program, steps=steps, state=replace(state, change=change))
    name = free_name(change.name, program.steps)
    steps = (*program.steps, Step(name, state.change))
    return replace(program, steps=steps, state=replace(state, change=Stored(name, change.columns)))


def _program(tree: Relation, views: AuxiliaryViews, change: Change) -> DeltaProgram | None:
    if views.recursion is not None:
        return inner_recursion.follow(tree, views.recursion, change)
    root = root_of(tree)
    if root is not None:
        return root_aggregate.follow(root, change)
    if views.groups is not None and isinstance(tree, TopK):
        return top_groups.follow(tree, views.groups, change)
    if views.buffer and isinstance(tree, TopK):
        return top_k_buffer.follow(tree, change)
    at_root = partitions.delta(tree, change) or top_k.at_root(tree, change) or recursive.at_root(tree, change)
    insert_only = at_root is None and only_inserts(tree, change)
    delta = at_root or (change.of(tree) if insert_only else consolidate(change.of(tree)))
    if isinstance(delta, Empty):
        return None
    kept = change.keep("change", delta)
    return DeltaProgram(tuple(change.steps), TableChange(kept, None, insert_only=insert_only))
