"""Decides if window functions are deterministic where ORDER BY leaves ties.

`rank` and sums over peers give equal rows equal results. `row_number`, `lag`, ROWS frames go by position, and rows that
ORDER BY does not tell apart have no fixed position. That does not show in two cases: the rows are unique by the columns
of PARTITION BY and ORDER BY (as after a GROUP BY these columns), or rows that agree in these columns agree in
everything the query reads, so that exchanging them changes nothing. In the second case functions with different ORDER
BYs must not meet: which number of one goes with which of the other is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from headrace.algebra.properties.dependencies import Dependency, Names, closure, dependencies, of_calls, pins
from headrace.algebra.properties.order import (
    PEERS,
    as_text,
    equal_means_same,
    is_float,
    positional,
    shown_as_text,
    unbracketed_sql,
)
from headrace.algebra.relations import (
    Project,
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


@dataclass(frozen=True, slots=True)
class LooseOrder:
    """An order of rows that leaves ties between rows which differ, and by which something goes.

    Args:
        rows: The rows, by name and type.
        told: Columns that the order, and PARTITION BY, tell apart.
        missing: Columns in which rows that tie may differ.
        keys: Keys of the rows.
        refusal: What is told of it.
        own_keys: Those among them that follow from the query alone; None for all.
    """

    rows: tuple[Column, ...]
    told: Names
    missing: Names
    keys: tuple[Names, ...]
    refusal: Refusal
    own_keys: tuple[Names, ...] | None = None


def loose_orders(tree: Relation, types_of: TypesOf, keys: FindKeys) -> Iterator[LooseOrder]:
    """Yield the orders of a query that leave ties, by which its result goes.

    Args:
        tree: The query, reading no column that it does not use.
        types_of: Spark's column types of a relation.
        keys: Finds keys of a relation.
    """
    inner = {id(node.input) for node in walk(tree) if isinstance(node, Window)}
    stacks = (_stack(node) for node in walk(tree) if isinstance(node, Window) and id(node) not in inner)
    for stack in stacks:
        yield from _loose_calls(stack, types_of, keys)
    for node in walk(tree):
        if isinstance(node, TopK) and (loose := _loose_cut(node, types_of, keys)) is not None:
            yield loose


def _loose_cut(topk: TopK, types_of: TypesOf, keys: FindKeys) -> LooseOrder | None:
    """Return the order of a LIMIT that leaves a tie between different rows.

    None where it does not; without ORDER BY, where there is one row at most.
    """
    ordered = frozenset(name for key in topk.order if (name := as_column(key.scalar)) is not None)
    found = tuple(keys(topk.input))
    if any(key <= ordered for key in found):
        return None
    rows = types_of(topk.input)
    exact = frozenset(column.name for column in rows if equal_means_same(column.type))
    fixed = closure(ordered & exact, [*dependencies(topk.input), *_zeros_told(topk.input, rows)])
    missing = frozenset(topk.columns) - fixed
    if topk.order and (not missing or any(key <= ordered | fixed for key in found)):
        return None
    return LooseOrder(rows, ordered | fixed if topk.order else frozenset(), missing, found, _cut_refusal(topk))


def _zeros_told(relation: Relation, rows: tuple[Column, ...]) -> Iterator[Dependency]:
    """Yield floats that another column shows as texts."""
    floats = {column.name for column in rows if is_float(column.type)}
    if not isinstance(relation, Project) or not floats:
        return
    values = {unbracketed_sql(scalar.words): name for name, scalar in relation.items if name in floats}
    for name, scalar in relation.items:
        if (value := values.get(as_text(scalar) or "")) is not None:
            yield frozenset({name}), frozenset({value})


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


def _loose_calls(stack: tuple[Window, ...], types_of: TypesOf, keys: FindKeys) -> Iterator[LooseOrder]:
    """Yield loose orders of windows one below the other."""
    if not any(positional(call) for window in stack for call in window.calls):
        return
    base = stack[-1].input
    rows = types_of(base)
    exact = frozenset(column.name for column in rows if equal_means_same(column.type))
    floats = frozenset(column.name for column in rows if is_float(column.type))
    follows = [*dependencies(base), *(each for window in stack for each in of_calls(window)), *_zeros_told(base, rows)]
    found = tuple(keys(base))
    for window in stack:
        for call in window.calls:
            told = pins(window, call)
            if not positional(call) or any(key <= told for key in found):
                continue
            others = {other.name for w in stack for other in w.calls if not _moves_with(w, other, window, call)}
            zeros = {name for key in call.order if (name := shown_as_text(key.scalar, floats)) is not None}
            fixed = closure((told & (exact | others)) | zeros, follows)
            missing = (frozenset(base.columns) | others) - fixed
            if missing and not any(key <= told | fixed for key in found):
                yield LooseOrder(rows, told | fixed, missing, found, _refusal(call))


def _refusal(call: WindowCall) -> Refusal:
    why = "goes by the position of rows, and its ORDER BY does not tell all of them apart"
    hint = "Order by more columns, until no two rows are equal in them and different in others that the query reads."
    return not_deterministic(call.written or f"{call.function}() OVER", call.place, why, hint)


def _moves_with(window: Window, other: WindowCall, own: Window, call: WindowCall) -> bool:
    """Return whether two functions share an order, so that ties affect both alike."""
    return window is own and positional(other) and other.order == call.order
