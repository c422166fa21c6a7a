"""Tell which window functions go by the position of rows, and which by their values."""

from __future__ import annotations

from headrace.algebra.relations import WindowCall
from headrace.algebra.scalar import Scalar, column
from headrace.algebra.types import divided, groupable, is_collated, mentions
from headrace.algebra.words import Kind, Words, closing, render, unbracketed

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
    """Return whether equal values are the same.

    They need not be of floats, with 0.0 and -0.0, of maps, with entries in any order, and of collated texts.
    """
    return groupable(type_) and not mentions(type_, "float", "double", "real") and not is_collated(type_)


def is_float(type_: str) -> bool:
    """Return whether a type has two zeros that are equal and print differently."""
    return type_.lower() in ("float", "double", "real")


def as_text(scalar: Scalar) -> str | None:
    """Return the SQL of what a scalar shows as a text, `CAST(… AS STRING)`, else None.

    It tells all floats apart that are not the same: each is written in its own way, and so are the two zeros.
    """
    words = scalar.words
    if len(words) < _LEAST or words[0].kind is not Kind.FUNCTION or words[0].name != "cast":
        return None
    ends = [word.text.upper() for word in words[-3:]]
    if ends != ["AS", "STRING", ")"] or closing(words, 1) != len(words) - 1:
        return None
    return unbracketed_sql(words[2:-3])


_LEAST = len(("CAST", "(", "x", "AS", "STRING", ")"))


def told_apart(value: str, type_: str) -> str:
    """Write what is different for values that are equal and not the same.

    Of numbers it is NULL but for zeros: nearly all are, and a text of each would cost more than what it is for. Of maps
    it is the order of their keys, for the same reason, where nothing else can differ, and lists of numbers without a
    zero are the same if they are equal.

    Args:
        value: The value, in SQL.
        type_: Its type.
    """
    if is_float(type_):
        return f"CASE WHEN {value} = 0 THEN CAST({value} AS STRING) END"
    kind, inner = divided(type_)
    if kind == "map" and all(map(equal_means_same, inner)):
        return f"map_keys({value})"
    if kind == "array" and is_float(inner[0]):
        return f"CASE WHEN array_contains({value}, CAST(0 AS {inner[0]})) THEN CAST({value} AS STRING) END"
    return f"CAST({value} AS STRING)"


def unbracketed_sql(words: Words) -> str:
    """Return the SQL of words without brackets around all of them."""
    return render(unbracketed(words))


def shown_as_text(scalar: Scalar, floats: frozenset[str]) -> str | None:
    """Return the column of floats that a scalar shows as a text; None for any other scalar."""
    inner = as_text(scalar)
    return next((n for n in scalar.columns & floats if inner == render(column(n).words)), None) if inner else None
