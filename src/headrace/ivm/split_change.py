"""Turns a change into the rows it adds and the rows it removes."""

from __future__ import annotations

from headrace.algebra.relations import Filter, Project, Relation, Repeat
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import identity, unweighted
from headrace.ivm.change import arrange
from headrace.names import WEIGHT

_WEIGHT = column(WEIGHT)


def insert_rows(change: Relation) -> Relation:
    """Return the rows a change adds, each as often as its weight says."""
    return _repeated(Filter(change, compose("{w} > 0", w=_WEIGHT)))


def delete_rows(change: Relation) -> Relation:
    """Return the rows a change removes, each as often as its weight says."""
    gone = Filter(change, compose("{w} < 0", w=_WEIGHT))
    columns = unweighted(change.columns)
    return _repeated(Project(gone, (*identity(columns), (WEIGHT, compose("-{w}", w=_WEIGHT)))))


def _repeated(positive: Relation) -> Relation:
    return Repeat(arrange(positive, unweighted(positive.columns)))
