"""ORDER BY … LIMIT: the first rows in an order without ties between different rows.

Δ(τ(R)) = τ(R′) − τ(R) in general. At the root τ(R) is the stream table, and as long as no change removes one of its
rows, τ(R′) = τ(τ(R) ⊎ ΔR⁺): a row outside comes after all of them, or there is none. When one is removed, the rows are
read again. With OFFSET the rows before the first are not there, and they are read again each time.
Source: Yi, Yu, Yang, Xia, Chen, Efficient Maintenance of Materialized Top-k Views, ICDE 2003.
"""

from __future__ import annotations

from headrace.algebra.relations import Empty, Filter, Project, Relation, Repeat, SemiJoin, Stored, TopK, Union
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import identity
from headrace.ivm.change import Change, empty
from headrace.ivm.consolidate import consolidate, difference, difference_below
from headrace.ivm.program import STATE
from headrace.names import WEIGHT

_WEIGHT = column(WEIGHT)


def delta(topk: TopK, change: Change) -> Relation:
    """Return the first rows after, minus those before."""
    if not change.moves(topk.input):
        return empty(topk)
    return difference_below(
        topk.with_inputs(change.before(topk.input)),
        topk.with_inputs(change.after(topk.input)),
        change.exact,
        change.types,
    )


def at_root(tree: Relation, change: Change) -> Relation | None:
    """Return the change of a query that is the first rows of something.

    None for any other query.
    """
    if not isinstance(tree, TopK):
        return None
    moved = consolidate(change.of(tree.input))
    if isinstance(moved, Empty):
        return empty(tree)
    state = Stored(STATE, tree.columns)
    again = tree.with_inputs(change.after(tree.input))
    if tree.offset:
        return difference(state, again)
    return difference(state, from_state(tree, change.keep("moved", moved), state, again, change))


def from_state(tree: TopK, moved: Stored, state: Stored, again: Relation, change: Change) -> Relation:
    """Return the first rows of state and gained rows; read again if a state row was lost.

    Args:
        tree: The query.
        moved: The change of the rows that it chooses from.
        state: The stream table.
        again: The first rows, read again.
        change: Keeps what is computed once.
    """
    same = tuple((name, name) for name in tree.columns)
    lost = change.keep("lost", SemiJoin(Filter(moved, compose("{w} < 0", w=_WEIGHT)), state, same))
    reread = change.keep("rescanned", again, only_if=lost)
    gained = Project(Repeat(Filter(moved, compose("{w} > 0", w=_WEIGHT))), identity(tree.columns))
    merged = tree.with_inputs(Union((state, gained)))
    return Union((SemiJoin(merged, lost, (), anti=True), SemiJoin(reread, lost, ())))
