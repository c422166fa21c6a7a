"""Queries that read each other in a circle: one round towards their least fixed point.

Let X be what the members of a cycle hold, Q what their queries make of it, all queries monotone. Starting from nothing,
or from the fixed point over sources that only gained rows since, X ⊆ Q(X) ⊆ Q(Q(X)) … ends at the least fixed point.
A round computes only what is new, Q(X ⊎ ΔX) − Q(X), from the rows ΔX that the round before gained (semi-naive). The
rules for changes give just that, copies and all; for a query that is DISTINCT of something, what is new is what that
gained and the member does not hold yet, so that no old row is looked at again for its sake.
Source: Abiteboul, Hull, Vianu, Foundations of Databases, 1995, chapter 13 (semi-naive evaluation).
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from headrace.algebra.relations import Aggregate, Empty, Existence, Project, Relation, Stored
from headrace.algebra.scalar import all_of, as_column, column, equals
from headrace.algebra.tree import identity
from headrace.errors import InternalError
from headrace.ivm.change import Change, weigh
from headrace.ivm.consolidate import consolidate
from headrace.ivm.program import STATE, DeltaProgram, TableChange
from headrace.ivm.rules.registry import RULES
from headrace.names import RESERVED_PREFIX, TableName
from headrace.optimizer.optimizer import Optimizer


def first_round(tree: Relation) -> Relation:
    """Return all rows of a query as a change, each once, weighted by its copies."""
    return consolidate(weigh(tree, 1))


def gains_program(
    tree: Relation,
    changed: frozenset[TableName],
    optimizer: Optimizer,
    *,
    ansi: bool = True,
    types: Mapping[str, str] | None = None,
    exact: Set[str] = frozenset(),
) -> DeltaProgram | None:
    """Derive what a monotone query gains by its sources' gains.

    `state` is the member's own contents before.

    Args:
        tree: The query.
        changed: Sources that gained rows, and lost none.
        optimizer: Runs the passes over the program that the rules give.
        ansi: Whether arithmetic fails on overflow or yields NULL.
        types: Types of the query's columns by name, as far as known.
        exact: Those of its columns, by name, whose equal values are known to be the same.

    Returns:
        None when it gains nothing.
    """
    change = Change(RULES, changed, changed, ansi=ansi, types=types or {}, exact=exact)
    rows = _distinct_rows(tree)
    gained = consolidate(change.of(tree)) if rows is None else _unseen(rows, change)
    if isinstance(gained, Empty):
        return None
    kept = change.keep("gained", gained)
    return optimizer.derived(DeltaProgram(tuple(change.steps), TableChange(kept, None)), change.repeated)


def _distinct_rows(tree: Relation) -> Relation | None:
    """Return the input of a query's DISTINCT, its columns named alike, else None."""
    if isinstance(tree, Aggregate) and not tree.calls:
        return Project(tree.input, identity(tree.keys))
    if not isinstance(tree, Project) or not isinstance(tree.input, Aggregate) or tree.input.calls:
        return None
    shown = {as_column(scalar) for _, scalar in tree.items}
    return Project(tree.input.input, tree.items) if shown == set(tree.input.keys) else None


def _unseen(rows: Relation, change: Change) -> Relation:
    gained = change.of(rows)
    if isinstance(gained, Empty):
        return gained
    held = {name: f"{RESERVED_PREFIX}held_{i}" for i, name in enumerate(rows.columns)}
    state = Project(Stored(STATE, rows.columns), tuple((new, column(name)) for name, new in held.items()))
    same = all_of(equals(column(name), column(new), null_safe=True) for name, new in held.items())
    if same is None:
        raise InternalError("PLAN_INVALID", "A member of a cycle has no columns.")
    return weigh(Existence(Aggregate(gained, rows.columns), state, same, anti=True), 1)
