"""Window functions: affected partitions.

Let K be the partitions of ΔR. Δ(ω(R)) = ω(R′ ⋉ K) − ω(R ⋉ K): a window function looks at the rows of its own partition
only, and those of the other partitions are the same before and after. A row that moves between partitions touches both.
Without PARTITION BY there is one partition, and all of it is affected. Windows over each other that have one PARTITION
BY have one K: the lower ones keep every row in its partition.
Source: Gupta, Mumick, Subrahmanian, Maintaining Views Incrementally, SIGMOD 1993 (recompute what is affected).
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Empty, Relation, Window
from headrace.ivm.change import Change, empty
from headrace.ivm.consolidate import difference_below
from headrace.ivm.restriction import restricted


def delta(window: Window, change: Change) -> Relation:
    """Return the affected partitions after, minus the same partitions before."""
    touched = change.of(_divided(window))
    if isinstance(touched, Empty):
        return empty(window)
    before, after = change.before(window.input), change.after(window.input)
    if window.partition:
        keys = change.keep("touched", Aggregate(touched, window.partition))
        on = tuple((name, name) for name in window.partition)
        before, after = restricted(before, keys, on), restricted(after, keys, on)
    return difference_below(window.with_inputs(before), window.with_inputs(after), change.exact, change.types)


def _divided(window: Window) -> Relation:
    """Return the rows below the windows that stand over each other with the same PARTITION BY."""
    below = window.input
    if isinstance(below, Window) and below.partition == window.partition:
        return _divided(below)
    return below
