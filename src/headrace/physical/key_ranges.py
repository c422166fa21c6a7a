"""Between which values the keys near a change lie, so that files and row groups with no such key are not read.

A join with a set of keys has every row of a source read and looked up. But most changes are close together: recent
orders, numbers just given out. A few spans hold all keys, once the widest gaps are left out; as conditions with
literals they are compared with the bounds that Iceberg keeps of each file and Parquet of each row group. Keys that are
spread over everything give a span or two that hold all, at the price of looking: a fraction of reading a large source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.names import quote

WORTH_ROWS = 10_000_000
"""A smaller source is read in less time than looking for spans may save."""

MOST_SPANS, WIDE = 8, 0.02
"""How many spans at most, since each row that is read is compared with them; gaps of less than so much of the distance
between the first and the last key are none."""

WITHIN = "true /* within the spans of the keys */"
"""Stands in statements where the condition is put in once the keys are known."""


def spanned(table: str) -> str:
    """A table expression that reads what lies within spans.

    Args:
        table: The table expression, without alias.
    """
    return f"(SELECT * FROM {table} WHERE {WITHIN})"


def gaps_sql(keys: str) -> str:
    """One row: whether any key is NULL, the lowest and the highest one, and the wide gaps as pairs (below, above).

    Args:
        keys: A query of one column, whole numbers.
    """
    pairs = "transform(sequence(2, size(keys)), i -> struct(element_at(keys, i - 1) AS low, element_at(keys, i) AS up))"
    # as doubles, which do not overflow
    wide = f"double(g.up) - double(g.low) > {WIDE} * (double(element_at(keys, -1)) - double(element_at(keys, 1)))"
    gaps = f"CASE WHEN size(keys) > 1 THEN filter({pairs}, g -> {wide}) END"
    every = f"SELECT count_if(k IS NULL) > 0 AS any_null, array_sort(collect_set(k)) AS keys FROM ({keys}) AS t(k)"
    return f"SELECT any_null, try_element_at(keys, 1), try_element_at(keys, -1), {gaps} FROM ({every})"


def condition(column: str, found: Sequence[Any]) -> str:
    """What rows with one of the keys satisfy.

    Args:
        column: The source's column.
        found: The row that `gaps_sql` gives.
    """
    any_null, low, high, gaps = found
    name = quote(column)
    widest = sorted(gaps or (), key=lambda gap: gap[1] - gap[0])[1 - MOST_SPANS :]
    ends = [low, *(end for gap in sorted(widest) for end in gap), high]
    spans = [] if low is None else [_span(name, *ends[i : i + 2]) for i in range(0, len(ends), 2)]
    return " OR ".join([*spans, f"{name} IS NULL"] if any_null else spans) or "false"


def _span(name: str, low: int, high: int) -> str:
    return f"{name} = {_number(low)}" if low == high else f"{name} BETWEEN {_number(low)} AND {_number(high)}"


def _number(value: int) -> str:
    # the lowest of 64 bits is no literal with a sign before it
    return f"{value}L" if value > -(2**63) else f"({value + 1}L - 1L)"
