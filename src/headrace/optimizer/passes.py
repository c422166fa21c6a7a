"""The rewrites, in order.

Each is a function from tree to tree that keeps the bag of rows and the columns; its docstring states the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from headrace.algebra.relations import Relation
from headrace.optimizer.column_pruning import prune
from headrace.optimizer.empty_relations import drop_empty
from headrace.optimizer.filter_pushdown import push_filters
from headrace.optimizer.integer_keys import tell_numbers
from headrace.optimizer.merge_projections import merge
from headrace.optimizer.semijoin_pushdown import push_semi_joins

Pass = Callable[[Relation], Relation]

QUERY: tuple[Pass, ...] = (
    drop_empty,
    merge,
    push_filters,  # before deltas are taken, so that they start from equi-joins and filtered inputs
    merge,  # pushing leaves filters beside filters
    prune,
    merge,  # pruning leaves projections that change nothing
)
"""For a query's own tree."""

STEP: tuple[Pass, ...] = (
    drop_empty,  # first: an empty term must not be worked on
    merge,
    push_semi_joins,  # after merging, which takes renamings out of the way
    push_filters,  # conditions that came to stand above joins when a join was split into terms
    merge,
    prune,
    merge,  # pruning leaves projections that change nothing
    tell_numbers,  # last: others make semi-joins
)
"""For the steps and changes that rules derive."""


def step(types: Mapping[str, str]) -> tuple[Pass, ...]:
    """The passes of STEP, told the types of a query's columns."""
    typed = (push_semi_joins, tell_numbers)
    return tuple(partial(each, types=types) if each in typed else each for each in STEP)


def rewrite(relation: Relation, passes: tuple[Pass, ...]) -> Relation:
    """Apply passes in order."""
    for each in passes:
        relation = each(relation)
    return relation
