"""Adds floating-point numbers up in a fixed order, in the user's own text.

What a sum of floats is to the last digit depends on the order of addition, which Spark does not fix. Added up from the
least to the greatest it is a function of the rows, so that what a refresh computes again equals what is stored, and so
are averages, variances and the like: as sums over sorted arrays, by the recurrences that Spark itself uses. They are
written only where sums stand below another operator: at the top nothing is computed a second time.
Source: Welford, Note on a Method for Calculating Corrected Sums of Squares and Products, Technometrics 1962; Pébay,
Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical Moments, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.written_calls import WrittenCall, all_or_none, refused_calls, spaced
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.syntax.tokens import tokenize, words
from headrace.sql.refinements import FLOATS, Refinement

_SUM = "CAST(NULL AS DOUBLE), (s, v) -> coalesce(s, 0D) + v"
_MEAN = "(a, v) -> named_struct('n', a.n + 1D, 's', a.s + v), a -> CASE WHEN a.n > 0D THEN a.s / a.n END"
_DELTA, _COUNT = "(v - a.m)", "(a.n + 1D)"
_SQUARES = (
    f"(a, v) -> named_struct('n', {_COUNT}, 'm', a.m + {_DELTA} / {_COUNT},"
    f" 's', a.s + {_DELTA} * ({_DELTA} - {_DELTA} / {_COUNT}))"
)


def _squares(value: str, least: str) -> str:
    zero = "named_struct('n', 0D, 'm', 0D, 's', 0D)"
    return f"{zero}, {_SQUARES}, a -> CASE WHEN a.n > {least} THEN {value} END"


_SAMPLE, _POPULATION = "a.s / (a.n - 1D)", "a.s / a.n"
_FOLDS = {
    **dict.fromkeys(words("sum try_sum"), _SUM),
    **dict.fromkeys(words("avg mean try_avg"), f"named_struct('n', 0D, 's', 0D), {_MEAN}"),
    **dict.fromkeys(words("var_samp variance"), _squares(_SAMPLE, "1D")),
    "var_pop": _squares(_POPULATION, "0D"),
    **dict.fromkeys(words("std stddev stddev_samp"), _squares(f"sqrt({_SAMPLE})", "1D")),
    "stddev_pop": _squares(f"sqrt({_POPULATION})", "0D"),
}
"""Arguments of `aggregate` after the sorted array, by the function that it stands for."""


def ordered_sums(query: str, refusals: Sequence[Refusal]) -> tuple[Refinement, ...]:
    """Return what is written into a query so that its sums of floats are functions of the rows.

    Nothing where one of them cannot be written so, or anything else is refused.

    Args:
        query: The user's text.
        refusals: All that is refused of it.
    """
    calls = refused_calls(query, tokenize(query), refusals, _of_floats)
    return all_or_none(_ordered(call) for call in calls)


def _of_floats(refusal: Refusal) -> bool:
    return refusal.construct.endswith(FLOATS)


def _ordered(call: WrittenCall) -> Refinement | None:
    fold = _FOLDS.get(call.function)
    if fold is None or len(call.arguments) != 1:
        return None
    (argument,) = call.arguments
    rows = f"collect_list({argument}){spaced(call.written(call.tail))}"
    return call.replaced_by(f"aggregate(sort_array({rows}), {fold})", argument, "{}()" + FLOATS)
