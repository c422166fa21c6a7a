"""Values that cannot be computed a second time to the last digit.

Sums of floating-point numbers depend on the order of addition, which Spark does not fix. Where a rule takes old rows
back by computing them again, they could differ from those that were stored. At the root they never are computed again:
accumulators, or the stream table itself, say what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from headrace.algebra.relations import Aggregate, AggregateCall, Relation, Window, WindowCall
from headrace.algebra.scalar import called_with_column
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.algebra.types import decimal_of, is_integer
from headrace.errors import Place
from headrace.ivm.query_root import root_of
from headrace.ivm.rules.partitions import window_at_root
from headrace.optimizer.auxiliary_views.inner_recursion import recursion_below
from headrace.optimizer.auxiliary_views.top_groups import grouped

_FLOATS = ("float", "double")
AVERAGES = frozenset({"avg", "mean", "try_avg"})
LONG = ("bigint", "long")
"""Names of the type of 64-bit integers."""
_WIDE = ("int", "integer", *LONG)
_SUMS = AVERAGES | {"sum", "try_sum"}
_MOMENTS = frozenset({"std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance"})
_MOMENTS |= {"skewness", "kurtosis", "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept"}
_MOMENTS |= {"regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"}


def inexact(
    tree: Relation, types_of: Callable[[Relation], tuple[Column, ...]]
) -> Mapping[str, tuple[Place | None, ...]]:
    """Return functions whose old values cannot be recomputed to the last digit, with places.

    Args:
        tree: The query, with types.
        types_of: The columns of a relation.
    """
    root = root_of(tree) or grouped(tree)
    at_root = {root.aggregate} if root is not None else {window_at_root(tree)}
    found: dict[str, dict[Place | None, None]] = {}
    for node in walk(tree):
        for call in _in(node, types_of) if node not in at_root else ():
            found.setdefault(call.function, {})[call.place] = None
    return {name: tuple(places) for name, places in found.items()}


def rounded_averages(tree: Relation) -> tuple[AggregateCall, ...]:
    """Return the averages of integers of 32 bits or more that are computed a second time.

    Spark adds these integers up as floats, which hold 53 bits: sums of some million large ones have more. Those at the
    root are accumulated, unless the companion keeps a recursion in their place.

    Args:
        tree: The query, with types.
    """
    root = None if recursion_below(tree) is not None else root_of(tree) or grouped(tree)
    groups = [node for node in walk(tree) if isinstance(node, Aggregate)]
    return tuple(
        call
        for node in groups
        if root is None or node != root.aggregate
        for call in node.calls
        if call.function in AVERAGES and (call.argument_type or "").lower() in _WIDE
    )


def _in(node: Relation, types_of: Callable[[Relation], tuple[Column, ...]]) -> Iterator[AggregateCall | WindowCall]:
    if isinstance(node, Aggregate):
        yield from (call for call in node.calls if _aggregate(call))
    elif isinstance(node, Window) and any(c.function in _SUMS | _MOMENTS for c in node.calls):
        inputs = {c.name: c.type for c in types_of(node.input)}
        outputs = {c.name: c.type for c in types_of(node)}
        yield from (call for call in node.calls if _windowed(call, inputs, outputs))


def _aggregate(call: AggregateCall) -> bool:
    if call.function in _SUMS:
        return call.type in _FLOATS and not _added_exactly(call.argument_type)
    return call.function in _MOMENTS


def _windowed(call: WindowCall, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> bool:
    if call.function not in _SUMS:
        return call.function in _MOMENTS
    summed = called_with_column(call.call, call.function)
    return outputs[call.name] in _FLOATS and not _added_exactly(inputs.get(summed or ""))


def _added_exactly(type_: str | None) -> bool:
    """Return whether values are added up without rounding; texts are not: Spark makes floats.

    Averages of integers are not either beyond 53 bits; `exact_averages` writes those otherwise.
    """
    return is_integer(type_) or decimal_of(type_) is not None
