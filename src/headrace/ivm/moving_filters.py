"""Moving filters.

Let c(T) be a condition over rows and the time, and T, T′ the times of the last refresh and of this one:
Δ(σ_c(R)) = σ_c(T′)(ΔR) + σ_(c(T′) ∧ ¬c(T))(R) − σ_(c(T) ∧ ¬c(T′))(R), with R as it was in both last terms: the rows
that enter, and those that leave, because time has gone on. Where c compares a column with a bound, each is a range of
that column, and one of them is empty.
"""

from __future__ import annotations

from headrace.algebra.moving import fails_with_its_opposite
from headrace.algebra.relations import Empty, Existence, Relation
from headrace.algebra.scalar import compose
from headrace.ivm.change import Change, union_all, weigh
from headrace.names import CLOCK


def delta(node: Existence, change: Change) -> Relation:
    """Return the changed rows by the new time, and the rows that time alone moves."""
    left = change.of(node.left)
    now = left if isinstance(left, Empty) else Existence(left, change.after(node.right), node.condition)
    if CLOCK not in change.changed:
        return now
    rows = change.before(node.left)
    was, is_ = change.before(node.right), change.after(node.right)
    enter, leave = _only(node, rows, is_, was), _only(node, rows, was, is_)
    return union_all(now, weigh(enter, 1), weigh(leave, -1))


def _only(node: Existence, rows: Relation, true: Relation, false: Relation) -> Relation:
    """Return the rows for which the condition is true at one time and not at another."""
    held = Existence(rows, true, node.condition)
    if fails_with_its_opposite(node.condition):
        return Existence(held, false, compose("NOT {c}", c=node.condition))
    return Existence(held, false, node.condition, anti=True)
