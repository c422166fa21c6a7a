"""Windows at the root: old rows of affected partitions are read from the stream table.

Where every column of PARTITION BY is shown, the rows to take back are those of the state that have an affected key:
nothing has to be computed as it was before, and what is taken back is exactly what is there, float sums included.
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Empty, Filter, Project, Relation, SemiJoin, Stored, Window
from headrace.algebra.scalar import as_column
from headrace.algebra.tree import unweighted
from headrace.ivm.change import Change, empty
from headrace.ivm.consolidate import difference
from headrace.ivm.program import STATE
from headrace.ivm.restriction import restricted


def delta(tree: Relation, change: Change) -> Relation | None:
    """Return the change of a query that is a window under projections and filters.

    None for any other query.
    """
    found = _window_of(tree)
    if found is None:
        return None
    window, shown = found
    touched = change.of(window.input)
    if isinstance(touched, Empty):
        return empty(tree)
    old: Relation = Stored(STATE, tree.columns)
    new = change.after(tree)
    if window.partition:
        keys = change.keep("touched", Aggregate(touched, window.partition))
        on = tuple((shown[name], name) for name in window.partition)
        old, new = SemiJoin(old, keys, on), restricted(new, keys, on)
    return difference(old, new)


def window_at_root(tree: Relation) -> Window | None:
    """Return the window whose old rows are taken from the stream table; None when there is none."""
    found = _window_of(tree)
    return found[0] if found is not None else None


def _window_of(tree: Relation) -> tuple[Window, dict[str, str]] | None:
    """Return the window, and the output column that shows each column of its PARTITION BY."""
    shown = {name: name for name in unweighted(tree.columns)}
    while isinstance(tree, (Project, Filter)):
        if isinstance(tree, Project):
            below = dict[str, str]()
            for name, scalar in tree.items:
                source = as_column(scalar)
                if source is not None and name in shown:
                    below.setdefault(source, shown[name])
            shown = below
        tree = tree.input
    if not isinstance(tree, Window) or not set(tree.partition) <= shown.keys():
        return None
    return tree, shown
