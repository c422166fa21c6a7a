"""Decides if window functions are deterministic where ORDER BY leaves ties.

`rank` and sums over peers give equal rows equal results. `row_number`, `lag`, ROWS frames go by position, and rows that
ORDER BY does not tell apart have no fixed position. That does not show in two cases: the rows are unique by the columns
of PARTITION BY and ORDER BY (as after a GROUP BY these columns), or rows that agree in these columns agree in
everything the query reads, so that exchanging them changes nothing. In the second case functions with different ORDER
BYs must not meet: which number of one goes with which of the other is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headrace.algebra.properties.dependencies import Names, closure, dependencies, of_calls, pins
from headrace.algebra.properties.order import PEERS, equal_means_same, positional
from headrace.algebra.relations import (
    Relation,
    TopK,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import words

SETTLED = PEERS | words(
    """
    any avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp every kurtosis max mean
    median min percentile regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    skewness some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance
    """
)
"""Functions of a bag of rows: by position only in a frame that is."""

TypesOf = Callable[[Relation], tuple[Column, ...]]

FindKeys = Callable[[Relation], Iterable[Names]]
"""Finds keys of a relation."""


def undetermined(tree: Relation, types_of: TypesOf, keys: FindKeys) -> tuple[Refusal, ...]:
    """Return the window functions of a query that may give other results for the same rows.

    Args:
        tree: The query, reading no column that it does not use.
        types_of: Spark's column types of a relation.
        keys: Finds keys of a relation.
    """
    inner = {id(node.input) for node in walk(tree) if isinstance(node, Window)}
    stacks = (_stack(node) for node in walk(tree) if isinstance(node, Window) and id(node) not in inner)
    found = [refusal for stack in stacks for refusal in _refusals(stack, types_of, keys)]
    cuts = [node for node in walk(tree) if isinstance(node, TopK) and not _total(node, types_of, keys)]
    return (*found, *map(_cut_refusal, cuts))


def _total(topk: TopK, types_of: TypesOf, keys: FindKeys) -> bool:
    """Return whether ORDER BY leaves no tie between different rows.

    Without one, whether there is one row at most.
    """
    if not topk.order:
        return any(not key for key in keys(topk.input))
    ordered = frozenset(name for key in topk.order if (name := as_column(key.scalar)) is not None)
    found = tuple(keys(topk.input))
    if any(key <= ordered for key in found):
        return True
    exact = frozenset(column.name for column in types_of(topk.input) if equal_means_same(column.type))
    fixed = closure(ordered & exact, dependencies(topk.input))
    return set(topk.columns) <= fixed or any(key <= ordered | fixed for key in found)


def _cut_refusal(topk: TopK) -> Refusal:
    if not topk.order:
        why, hint = "takes any rows, as no ORDER BY says which", "Order by columns that tell all rows apart."
        return not_deterministic("LIMIT" if topk.limit is not None else "OFFSET", topk.place, why, hint)
    why = "cuts between rows that its ORDER BY does not tell apart"
    hint = "Order by more columns, until no two rows of the result are equal in them and different in others."
    return not_deterministic("LIMIT" if topk.limit is not None else "OFFSET", topk.place, why, hint)


def _stack(window: Window) -> tuple[Window, ...]:
    below = window.input
    return (window, *(_stack(below) if isinstance(below, Window) else ()))


def _refusals(stack: tuple[Window, ...], types_of: TypesOf, keys: FindKeys) -> Iterator[Refusal]:
    """Yield refusals for windows one below the other."""
    if not any(positional(call) for window in stack for call in window.calls):
        return
    base = stack[-1].input
    exact = frozenset(column.name for column in types_of(base) if equal_means_same(column.type))
    follows = [*dependencies(base), *(each for window in stack for each in of_calls(window))]
    found = tuple(keys(base))
    for window in stack:
        for call in window.calls:
            told = pins(window, call)
            if not positional(call) or any(key <= told for key in found):
                continue
            others = {other.name for w in stack for other in w.calls if not _moves_with(w, other, window, call)}
            fixed = closure(told & (exact | others), follows)
            if not set(base.columns) | others <= fixed and not any(key <= told | fixed for key in found):
                yield _refusal(call)


def _refusal(call: WindowCall) -> Refusal:
    why = "goes by the position of rows, and its ORDER BY does not tell all of them apart"
    hint = "Order by more columns, until no two rows are equal in them and different in others that the query reads."
    return not_deterministic(call.written or f"{call.function}() OVER", call.place, why, hint)


def _moves_with(window: Window, other: WindowCall, own: Window, call: WindowCall) -> bool:
    """Return whether two functions share an order, so that ties affect both alike."""
    return window is own and positional(other) and other.order == call.order
