"""Applying changes: pure builders of what is written.

A state S and a change C give S ⊎ C; a table whose rows would get a negative weight does not belong to the change, and
the query fails rather than store something else.
"""

from __future__ import annotations

from headrace.algebra.relations import Filter, Project, Relation, Repeat, SemiJoin, Union
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import identity, unweighted
from headrace.ivm.change import arrange, weigh
from headrace.ivm.consolidate import consolidate
from headrace.names import WEIGHT

_WEIGHT = column(WEIGHT)


def insert_rows(change: Relation, *, repeated: bool = True) -> Relation:
    """The rows a change adds.

    Args:
        change: Columns and WEIGHT.
        repeated: Each as often as its weight says; False where a key rules out weights above 1.
    """
    return _bag(Filter(change, compose("{w} > 0", w=_WEIGHT)), repeated)


def delete_rows(change: Relation, *, repeated: bool = True) -> Relation:
    """The rows a change removes; arguments as for `insert_rows`."""
    gone = Filter(change, compose("{w} < 0", w=_WEIGHT))
    columns = unweighted(change.columns)
    return _bag(Project(gone, (*identity(columns), (WEIGHT, compose("-{w}", w=_WEIGHT)))), repeated)


def _bag(positive: Relation, repeated: bool) -> Relation:
    if repeated:
        return Repeat(arrange(positive, unweighted(positive.columns)))
    return Project(positive, identity(unweighted(positive.columns)))


def merged_state(state: Relation, change: Relation, key: tuple[str, ...] | None) -> Relation:
    """The whole table after a change, for overwriting it.

    Args:
        state: The table as it is.
        change: Its columns and WEIGHT.
        key: As in `TableChange`: None for a bag.

    The query fails with STATE_DIVERGED when the change removes a row the table does not have.
    """
    columns = state.columns
    total = consolidate(Union((weigh(state, 1), arrange(change, columns))))
    message = "raise_error('[STATE_DIVERGED] a change removes rows that the stream table does not have')"
    checked = compose(f"CAST(CASE WHEN {{w}} > 0 THEN {{w}} ELSE {message} END AS bigint)", w=_WEIGHT)
    weights = Project(total, (*identity(columns), (WEIGHT, checked)))
    # the check must be evaluated, so the weight is always read: by repeating, or by the filter
    return _bag(Filter(weights, compose("{w} > 0", w=_WEIGHT)), repeated=key is None)


def replaced_state(state: Relation, change: Relation, key: tuple[str, ...]) -> Relation:
    """Like `merged_state`, without grouping the table: rows whose key the change names are replaced by its new rows.

    Unlike `merged_state` it does not notice a removed row that was not there; compare row counts. It is for columns
    that cannot be grouped.
    """
    touched = Project(change, tuple((f"__hr_key.{name}", column(name)) for name in key))
    kept = SemiJoin(state, touched, tuple((name, f"__hr_key.{name}") for name in key), anti=True)
    added = Project(Filter(change, compose("{w} > 0", w=_WEIGHT)), identity(state.columns))
    return Union((kept, added))
