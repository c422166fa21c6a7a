"""Aggregate functions by how they are maintained."""

from __future__ import annotations

from headrace.sql.reader.scalars.lexemes import Lexemes, Role
from headrace.sql.reader.syntax.tokens import words

ACCUMULATED = {
    **dict.fromkeys(("avg", "mean"), "avg"),
    "count": "count",
    "sum": "sum",
    # Spark itself takes these for the least and the greatest of two truth values
    **dict.fromkeys(("min", "bool_and", "every"), "min"),
    **dict.fromkeys(("max", "bool_or", "some", "any"), "max"),
}
"""Functions with accumulators, and the name each has there."""

OF_CONDITIONS = words("bool_and bool_or every some any count_if")
"""Functions of truth values: Spark casts a text to one."""

_ONE = words(
    """
    bit_and bit_or bit_xor kurtosis median skewness std stddev stddev_pop stddev_samp var_pop var_samp variance
    """
)
_TWO = words(
    """
    corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy
    """
)
RECOMPUTED: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_ONE, (1, 1)),
    **dict.fromkeys(_TWO, (2, 2)),
    "percentile": (2, 3),
    # a function of the set of values: registers keep the greatest of what they have seen
    "approx_count_distinct": (1, 2),
    # of these `ties` judges whether rows, or their order, leave a choice
    **dict.fromkeys(("try_avg", "try_sum"), (1, 1)),
    **dict.fromkeys(("max_by", "min_by"), (2, 2)),
    **dict.fromkeys(("any_value", "first", "first_value", "last", "last_value"), (1, 2)),
}
"""Functions of a bag of rows without accumulators, with the least and greatest number of arguments."""

ORDERED: dict[str, tuple[int, int]] = {
    "mode": (0, 0),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), (1, 1)),
    **dict.fromkeys(("listagg", "string_agg"), (1, 2)),
}
"""Functions that are maintained with WITHIN GROUP (ORDER BY …), with the number of their arguments."""

COLLECTING = words("array_agg collect_list collect_set")
"""Functions that give an array whose order is that of the rows."""

JOINING = words("listagg string_agg")
"""Functions that give a text of the rows' texts."""

CHOOSING_BY = words("max_by min_by")
"""Functions that choose a row by another expression."""

ORDER_TAKERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(words("array_max array_min array_sort cardinality size"), (1, 1)),
    "sort_array": (1, 2),
}
"""Functions of an array that give the same whatever its order is, with the number of their arguments."""

COPIES_DO_NOT_MATTER = frozenset({"min", "max"})
"""Functions for which DISTINCT says nothing."""


def settled_mode(arguments: tuple[Lexemes, ...]) -> bool:
    """Return whether `mode` must choose the least among equally frequent values."""
    return len(arguments) == 2 and [(p.role, p.text.lower()) for p in arguments[1]] == [(Role.LITERAL, "true")]
