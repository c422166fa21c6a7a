"""Ranges of the keys of a change, for skipping files and row groups.

A join with a set of keys has every row of a source read and looked up. But most changes are close together: recent
orders, numbers just given out. A few ranges hold all keys, once the widest gaps are left out; as conditions with
literals they are compared with the bounds that Iceberg keeps of each file and Parquet of each row group. Keys that are
spread over everything give a range or two that hold all, at the price of looking: a fraction of reading a large source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.names import quote

WORTH_ROWS = 10_000_000
"""A smaller source is read in less time than looking for ranges may save."""

MOST_KEYS = 1_000_000
"""Of a larger change the keys are not looked at: one task would hold them all, and they are seldom close together."""

MOST_RANGES, WIDE = 8, 0.02
"""Most ranges of a change's keys, and the least gap between two of them.

Few, since each row that is read is compared with them. The gap is a share of the distance between the first and the
last key.
"""


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges that hold all keys of a change.

    Args:
        column: The source's column.
        ranges: First and last key of each range, both included, in order.
        any_null: Whether NULL is among the keys.
    """

    column: str
    ranges: tuple[tuple[int, int], ...]
    any_null: bool

    @property
    def condition(self) -> str:
        """Return the SQL condition that rows with one of the keys satisfy."""
        name = quote(self.column)
        parts = [_within(name, low, high) for low, high in self.ranges]
        return " OR ".join([*parts, f"{name} IS NULL"] if self.any_null else parts) or "false"


def gaps_sql(keys: str) -> str:
    """Write a query for a change's key range.

    It returns one row: whether any key is NULL, the lowest and highest, the wide gaps as pairs (below, above).

    Args:
        keys: A query of one column, whole numbers.
    """
    pairs = "transform(sequence(2, size(keys)), i -> struct(element_at(keys, i - 1) AS low, element_at(keys, i) AS up))"
    # as doubles, which do not overflow
    wide = f"double(g.up) - double(g.low) > {WIDE} * (double(element_at(keys, -1)) - double(element_at(keys, 1)))"
    gaps = f"CASE WHEN size(keys) > 1 THEN filter({pairs}, g -> {wide}) END"
    every = f"SELECT count_if(k IS NULL) > 0 AS any_null, array_sort(collect_set(k)) AS keys FROM ({keys}) AS t(k)"
    return f"SELECT any_null, try_element_at(keys, 1), try_element_at(keys, -1), {gaps} FROM ({every})"


def ranges_of(column: str, found: Sequence[Any]) -> KeyRanges:
    """Build the ranges from the row that `gaps_sql` gives.

    Args:
        column: The source's column.
        found: The row.
    """
    any_null, low, high, gaps = found
    widest = sorted(gaps or (), key=lambda gap: gap[1] - gap[0])[1 - MOST_RANGES :]
    ends = [low, *(end for gap in sorted(widest) for end in gap), high]
    ranges = () if low is None else tuple((ends[i], ends[i + 1]) for i in range(0, len(ends), 2))
    return KeyRanges(column, ranges, bool(any_null))


def _within(name: str, low: int, high: int) -> str:
    return f"{name} = {_number(low)}" if low == high else f"{name} BETWEEN {_number(low)} AND {_number(high)}"


def _number(value: int) -> str:
    # the lowest of 64 bits is no literal with a sign before it
    return f"{value}L" if value > -(2**63) else f"({value + 1}L - 1L)"
