"""Tell which window functions go by the position of rows, and which by their values."""

from __future__ import annotations

from headrace.algebra.relations import WindowCall
from headrace.algebra.types import groupable, mentions

_CHOOSING = frozenset({"any_value", "first", "first_value", "last", "last_value", "max_by", "min_by", "nth_value"})
POSITIONAL = _CHOOSING | {"row_number", "ntile", "lag", "lead", "collect_list", "array_agg"}
"""Functions that go by the position of rows, whatever the frame."""

PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions that give rows equal in ORDER BY equal results."""


def positional(call: WindowCall) -> bool:
    """Return whether a function's result depends on the order of rows that tie."""
    frame = call.frame.upper().split()
    if call.function in PEERS or call.function in POSITIONAL:
        return call.function in POSITIONAL
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return bool(frame) and frame[0] == "ROWS" and " ".join(frame) != whole


def equal_means_same(type_: str) -> bool:
    """Return whether equal values are identical, unlike 0.0 and -0.0 or collated texts."""
    return groupable(type_) and not mentions(type_, "float", "double", "real") and "collate" not in type_.lower()
