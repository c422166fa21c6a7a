"""GROUP BY and DISTINCT below the root, or without accumulators: affected groups.

Let K be the keys of ΔR. Δ(γ(R)) = γ(R′ ⋉ K) − γ(R ⋉ K): groups outside K have the same rows before and after. NULL is
a key like any other. Of K only those keys matter by which groups are asked for, where these are known (`partners`).
Without keys there is one group, and it has a row before and after, also over no input.
Source: Gupta, Mumick, Subrahmanian, Maintaining Views Incrementally, SIGMOD 1993 (recompute what is affected).
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Empty, Relation, SemiJoin
from headrace.ivm.affected_keys import touched
from headrace.ivm.change import Change, empty
from headrace.ivm.consolidate import difference_below


def delta(aggregate: Aggregate, change: Change) -> Relation:
    """Return the affected groups after, minus the same groups before."""
    before, after = change.before(aggregate.input), change.after(aggregate.input)
    if aggregate.keys:
        groups = touched(aggregate.input, aggregate.keys, change)
        if isinstance(groups, Empty):
            return empty(aggregate)
        for key, values in change.partners.get(aggregate, ()):
            groups = SemiJoin(groups, values, tuple((key, value) for value in values.columns))
        keys = change.keep("touched", groups)
        on = tuple((key, key) for key in aggregate.keys)
        before, after = SemiJoin(before, keys, on), SemiJoin(after, keys, on)
    return difference_below(aggregate.with_inputs(before), aggregate.with_inputs(after), change.exact, change.types)
