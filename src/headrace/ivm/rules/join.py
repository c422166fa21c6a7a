"""Inner join.

Δ(L ⋈ R) = ΔL ⋈ R′ + L ⋈ ΔR, where R′ is R after the change. Weights multiply, so a deletion needs no case of its own.
Over more than two inputs the left side is a join again, and the formula is applied to it: each term reads the inputs
before its own change as they were, and those after it as they are. Every term starts from a change and goes on to
inputs that share a condition with what it has, be it one that only follows from others, so that no term multiplies two
inputs that did not change. The last input is read once for all changes of the others. So those that did not change
stand last, and among the others the largest; but behind them those that group rows, which then group for as few keys as
possible. An input of one row, such as the value of a subquery, is looked at first: while its row stays the same, no
other input is read for it. An input that groups rows groups those only whose key the term has.
Source: Budiu et al., DBSP, VLDB 2023, section 4 (bilinear operators).
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.joins import at_most_one_row, connected, flatten, ready
from headrace.algebra.properties.equalities import implied
from headrace.algebra.relations import Aggregate, Empty, Filter, Join, Relation
from headrace.algebra.scalar import Scalar, all_of
from headrace.algebra.tree import walk
from headrace.ivm.change import Change, arrange, empty, union_all
from headrace.ivm.consolidate import consolidated_apart, loose_columns
from headrace.ivm.rules.existence import with_partners


def delta(join: Join, change: Change) -> Relation:
    """Return one term for each changed input."""
    inputs, conditions = flatten(join)
    conditions += implied(conditions, inputs, change.types)
    single = tuple(each for each in inputs if at_most_one_row(each))
    order = [each for each in inputs if not at_most_one_row(each)]
    order.sort(key=lambda side: (_groups(side), not change.touches(side), change.size(side)))
    inputs = (*connected(order[0], order[1:], conditions), *single) if order else single
    columns = inputs[0].columns
    total = _where(change.of(inputs[0]), [c for c in conditions if c.columns <= set(columns)])
    for i, right in enumerate(inputs[1:], start=1):
        columns = columns + right.columns
        mine = tuple(c for c in conditions if c.columns <= set(columns))
        by_left = _chain(total, [change.after(right)], ready(mine, set(columns) - set(right.columns)), change)
        before = sorted(inputs[:i], key=change.size) if _groups(right) else inputs[:i]
        others = connected(right, before, mine)[1:]
        by_right = _by_right(right, [change.before(other) for other in others], mine, change)
        total = union_all(*(_arranged(term, columns) for term in (by_left, by_right)))
    return arrange(total, join.columns) if not isinstance(total, Empty) else empty(join)


def _by_right(right: Relation, others: Sequence[Relation], conditions: Sequence[Scalar], change: Change) -> Relation:
    moved = change.of(right)
    if isinstance(moved, Empty) or not at_most_one_row(right):
        return _chain(moved, others, conditions, change)
    # 0.0 that becomes -0.0 is a change, and for an unchanged value the others must not be read; of a type that cannot
    # be grouped by, the value is taken to have changed, unless the rows below tell otherwise
    loose = loose_columns(right.columns, change.exact, change.types)
    value = change.keep("value", consolidated_apart(moved, loose))
    return change.keep("revalued", _chain(value, others, conditions, change), only_if=value)


def _groups(relation: Relation) -> bool:
    return any(isinstance(node, Aggregate) and node.keys for node in walk(relation))


def _where(term: Relation, conditions: Sequence[Scalar]) -> Relation:
    condition = all_of(conditions)
    return term if condition is None or isinstance(term, Empty) else Filter(term, condition)


def _arranged(term: Relation, columns: tuple[str, ...]) -> Relation:
    return term if isinstance(term, Empty) else arrange(term, columns)


def _chain(start: Relation, others: Sequence[Relation], conditions: Sequence[Scalar], change: Change) -> Relation:
    """Join a change with unchanged inputs in turn, applying conditions as early as possible."""
    if isinstance(start, Empty):
        return start
    result = start
    waiting = list(conditions)
    for other in others:
        there = set(result.columns) | set(other.columns)
        now = [c for c in waiting if c.columns <= there]
        waiting = [c for c in waiting if not c.columns <= there]
        on = all_of(now)
        if on is not None and _groups(other) and not at_most_one_row(other):
            result, other = with_partners(on, result, other, change)
        result = Join(result, other, on, small_left=True)
    return result
