"""The average of decimals from their sum and count, equal to Spark's to the last digit.

Spark's `avg(decimal(p,s))` is `decimal(p+4,s+4)`: the exact quotient of a `decimal(p+10,s)` and a count, rounded half
up once. A division in SQL rounds at its own result scale first, and rounding twice can differ. It cannot while the
division keeps 12 digits more than the result: the distance of a quotient from the middle between two results is zero
or at least 1/(2·10^(s+4)·n), which is more than the first rounding error for fewer than 10^12 rows. For wider types
the remainder is taken off before the division, which is exact then.
"""

from __future__ import annotations

from headrace.algebra.scalar import Scalar, column, compose
from headrace.algebra.types import MAX_PRECISION, decimal

_COUNT = "decimal(15,0)"
_SPARE = 12
"""Digits beyond those of the result with which a quotient rounds as the exact one does."""


def quotient(shape: tuple[int, int], total: str, count: str) -> Scalar | None:
    """Return the average as an expression, NULL for a count of zero.

    Args:
        shape: Precision and scale of the averaged type.
        total: Column that holds the sum.
        count: Column that holds the number of summed values.

    Returns:
        None where neither way is exact.
    """
    precision, scale = shape
    result = decimal(precision + 4, scale + 4)
    if precision + 10 > MAX_PRECISION or precision + 4 > MAX_PRECISION:
        return None
    digits = precision + 10 - scale
    kept = min(max(6, scale + 16), max(MAX_PRECISION - digits, 6))
    if kept - (scale + 4) >= _SPARE:
        template = f"CASE WHEN {{n}} > 0 THEN CAST({{s}} / CAST({{n}} AS {_COUNT}) AS {result}) END"
        return compose(template, s=column(total), n=column(count))
    return _by_remainder(precision, scale, result, column(total), column(count))


def _by_remainder(precision: int, scale: int, result: str, total: Scalar, count: Scalar) -> Scalar | None:
    """Round half up as floor((2a + n) / 2n) over whole numbers.

    Here a is the sum in units of the result's last digit.
    """
    if precision + scale + 17 > MAX_PRECISION:
        return None
    units = f"CAST(2{'0' * (scale + 4)} AS {decimal(scale + 5, 0)})"
    doubled = compose(
        f"CAST(abs({{s}}) * {units} + CAST({{n}} AS {_COUNT}) AS {decimal(precision + 16, 0)})", s=total, n=count
    )
    twice = compose("CAST(2 * {n} AS decimal(16,0))", n=count)
    floor = compose(f"CAST(({{a}} - {{a}} % {{b}}) / {{b}} AS {decimal(precision + 4, 0)})", a=doubled, b=twice)
    last = f"CAST(0.{'0' * (scale + 3)}1 AS {decimal(scale + 4, scale + 4)})"
    sign = compose("CAST(CASE WHEN {s} < 0 THEN -1 ELSE 1 END AS decimal(1,0))", s=total)
    template = f"CASE WHEN {{n}} > 0 THEN CAST({{q}} * {last} * {{sign}} AS {result}) END"
    return compose(template, q=floor, sign=sign, n=count)
