"""Brings a stored table to its new contents by overwriting it, whatever Headrace would write."""

from __future__ import annotations

from headrace.algebra.relations import Filter, Project, Relation, Repeat, SemiJoin, Union
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import identity
from headrace.ivm.change import arrange, weigh
from headrace.ivm.consolidate import consolidate
from headrace.names import WEIGHT

_WEIGHT = column(WEIGHT)


def merged_state(state: Relation, change: Relation, key: tuple[str, ...] | None) -> Relation:
    """The whole table after a change; the query fails when the change removes a row that the table does not have.

    Args:
        state: The table as it is.
        change: Its columns and WEIGHT.
        key: As in `TableChange`: None for a bag, of which rows must be there to be removed.
    """
    columns = state.columns
    if key is not None:
        return _by_key(state, change, key)
    total = consolidate(Union((weigh(state, 1), arrange(change, columns))))
    message = "raise_error('[STATE_DIVERGED] a change removes rows that the stream table does not have')"
    # rows that cancel out have zero, and may be looked at before they are left out: Spark chooses the order of filters
    checked = compose(f"CAST(CASE WHEN {{w}} >= 0 THEN {{w}} ELSE {message} END AS bigint)", w=_WEIGHT)
    weights = Project(total, (*identity(columns), (WEIGHT, checked)))
    # the check must be evaluated, so the weight is always read: by repeating, or by the filter
    found = Filter(weights, compose("{w} > 0", w=_WEIGHT))
    return Repeat(found)


def _by_key(state: Relation, change: Relation, key: tuple[str, ...]) -> Relation:
    """The table with new rows in the place of those of their keys, as a table with a key is written."""
    gone = Filter(change, compose("{w} < 0", w=_WEIGHT))
    stay = SemiJoin(state, Project(gone, identity(key or state.columns)), tuple((k, k) for k in key), anti=True)
    return Union((stay, Project(Filter(change, compose("{w} > 0", w=_WEIGHT)), identity(state.columns))))
