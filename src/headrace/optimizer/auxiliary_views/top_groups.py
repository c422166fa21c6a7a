"""ORDER BY … LIMIT over GROUP BY: keeps all groups and takes the first of them.

τ(γ(R)) after a change is τ of the companion after it: its groups that were not touched, and the touched ones as they
are now. So no change, however many of the first rows it takes away, makes the sources be read again. What is taken back
is what the stream table holds. Where the companion is large, the first rows are looked for among those of the stream
table and the touched groups, unless one of the former is lost.
Source: Yi, Yu, Yang, Xia, Chen, Efficient Maintenance of Materialized Top-k Views, ICDE 2003.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.relations import Relation, SemiJoin, Stored, TopK, Union
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.change import Change
from headrace.ivm.consolidate import consolidate, difference
from headrace.ivm.program import STATE, DeltaProgram, FullProgram, TableChange
from headrace.ivm.query_root import Root, root_of
from headrace.ivm.rules import top_k
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews


def keep_groups(views: AuxiliaryViews, tree: Relation) -> AuxiliaryViews:
    """Keep all groups where ORDER BY … LIMIT at the root shows the first of them.

    Args:
        views: What else the companion keeps.
        tree: The query.
    """
    return replace(views, groups=grouped(tree))


def grouped(tree: Relation) -> Root | None:
    """Return the aggregate whose first groups a query shows; None for any other query."""
    return root_of(tree.input) if isinstance(tree, TopK) else None


def full(tree: TopK, root: Root) -> FullProgram:
    """Compute all groups from the sources and the first rows from the groups.

    Args:
        tree: The query, first rows of an aggregate.
        root: The aggregate, which the companion stores.
    """
    everything = root_aggregate.full(root)
    assert everything.state is not None
    return replace(everything, state=tree.with_inputs(everything.state))


def follow(tree: TopK, root: Root, change: Change) -> DeltaProgram:
    """Return the program for a change of the aggregate's input.

    Args:
        tree: The query, first rows of an aggregate.
        root: The aggregate, which the companion stores.
        change: The changed sources; gets the steps of the program.
    """
    touched = root_aggregate.moved(root, change)
    state = Stored(STATE, tree.columns)
    now = tree.with_inputs(root_aggregate.shown(root, companion_after(root, touched)))
    if tree.offset or change.companion_rows < root_aggregate.LARGE:
        first = difference(state, now)
    else:
        rows = change.keep("moved", consolidate(root_aggregate.state_change(root, touched).change))
        first = difference(state, top_k.from_state(tree, rows, state, now, change))
    kept = change.keep("first", first)
    return DeltaProgram(tuple(change.steps), TableChange(kept, None), root_aggregate.companion_change(root, touched))


def companion_after(root: Root, touched: Stored) -> Relation:
    """Return all groups as they are now.

    A global aggregate has one group, which counts as touched whatever changed.

    Args:
        root: The aggregate.
        touched: The touched groups, with accumulators as published and as they will be.
    """
    keys = tuple(name for _, name in root.keys)
    now = root_aggregate.companion_now(root, touched)
    if not keys:
        return now
    others = SemiJoin(Stored(root.place, root.companion), touched, tuple((key, key) for key in keys), anti=True)
    return Union((others, now))
