"""Arrow batches as the text that COPY reads, whole columns at a time.

Values are written so that PostgreSQL reads them back exactly: shortest digits for floats, years before Christ as it
writes them, bytes in hex. A line is joined from columns by Arrow's kernels, never row by row in Python.

Source: PostgreSQL documentation, "COPY", text format; "Array Input and Output Syntax".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import UserError

NULL = "\\N"
ROWS = 50_000
"""Rows of one piece of text, so that memory stays small however large a batch is."""

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
"""The first of January of the years 1 and 10000, in days since 1970."""
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years, and days, the calendar is the same again."""
_DAY_US = 86_400_000_000


def copy_text(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """Yield the rows of a batch as COPY's text, in pieces.

    Raises:
        UserError: `SINK_VALUE_REFUSED` for a text with the character of code 0.
    """
    for start in range(0, batch.num_rows, ROWS):
        yield _lines(batch.slice(start, ROWS))


def _lines(batch: pa.RecordBatch) -> memoryview:
    texts: list[Any] = [_field(column, name) for column, name in zip(batch.columns, batch.schema.names, strict=True)]
    lines = pc.binary_join_element_wise(*texts, _one("\t"), null_handling="replace", null_replacement=NULL)
    lines = pc.binary_join_element_wise(lines, _one(""), _one("\n"))
    return _payload(lines)


def _payload(lines: pa.Array) -> memoryview:
    """Return the bytes of all lines, which Arrow keeps one after the other."""
    chunk = lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
    first, last = _offsets(chunk)
    return memoryview(chunk.buffers()[2])[first:last]


def _offsets(lines: pa.Array) -> tuple[int, int]:
    raw = memoryview(lines.buffers()[1]).cast("B")
    offsets = raw.cast("q") if pa.types.is_large_string(lines.type) else raw.cast("i")
    return offsets[lines.offset], offsets[lines.offset + len(lines)]


def _field(column: pa.Array, name: str) -> pa.Array:
    return _escaped(_text(column, name))


def _text(column: pa.Array, name: str) -> pa.Array:
    """Return a column's values as PostgreSQL reads them, without what COPY asks for."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _text(column.dictionary_decode(), name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _array(column, name)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        values = [None if v is None else "\\x" + v.hex() for v in column.to_pylist()]
        return pa.array(values, pa.large_string())
    if pa.types.is_date32(kind):
        return _moments(column, pc.cast(column, pa.int32()), 1)
    if pa.types.is_timestamp(kind):
        micros = pc.cast(column, pa.timestamp("us", kind.tz))
        return _moments(micros, pc.cast(micros, pa.int64()), _DAY_US)
    text = pc.cast(column, pa.large_string())
    if (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and _any(pc.match_substring(text, "\0")):
        raise UserError(
            "SINK_VALUE_REFUSED",
            f"Column {name} has a text with the character of code 0, which PostgreSQL cannot hold.",
            hint=f"Remove it in the query: replace({name}, char(0), '').",
        )
    return text


def _moments(column: pa.Array, numbers: pa.Array, day: int) -> pa.Array:
    """Write dates or timestamps with PostgreSQL's years.

    Arrow counts years in 16 bits and knows no BC: what is beyond four digits is moved by whole cycles of the calendar
    to where it writes the same, and its year moved back in the text.

    Args:
        column: The moments.
        numbers: The same as numbers.
        day: How many of these are a day.
    """
    first, end, cycle = (days * day for days in (_FIRST_DAY, _END_DAY, _CYCLE_DAYS))
    if not _any(pc.or_(pc.less(numbers, first), pc.greater_equal(numbers, end))):
        return pc.cast(column, pa.large_string())
    parts = [None if n is None else divmod(n - first, cycle) for n in numbers.to_pylist()]
    moved = pa.array([None if of is None else first + of[1] for of in parts], numbers.type)
    texts = pc.cast(pc.cast(moved, column.type), pa.large_string()).to_pylist()
    later = [None if of is None else _later(text, _CYCLE_YEARS * of[0]) for text, of in zip(texts, parts, strict=True)]
    return pa.array(later, pa.large_string())


def _later(text: str, years: int) -> str:
    """Add years to a moment's text, as PostgreSQL writes them.

    The year 0 is 1 BC, the year -43 is 44 BC.
    """
    year, _, rest = text.partition("-")
    number = int(year) + years
    return f"{number:04}-{rest}" if number > 0 else f"{1 - number:04}-{rest} BC"


def _array(column: pa.Array, name: str) -> pa.Array:
    """Return lists as array literals: every element in quotes but NULL."""
    inner = _text(column.flatten(), name)
    for old, new in (("\\", "\\\\"), ('"', '\\"')):
        if _any(pc.match_substring(inner, old)):
            inner = pc.replace_substring(inner, old, new)
    quoted = pc.binary_join_element_wise(_one('"'), inner, _one('"'), _one(""))
    quoted = pc.fill_null(quoted, "NULL")
    lengths = pc.cast(pc.fill_null(pc.list_value_length(column), 0), pa.int64())
    bounds = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    lists = pa.LargeListArray.from_arrays(bounds, quoted)
    body = pc.binary_join_element_wise(_one("{"), pc.binary_join(lists, _one(",")), _one("}"), _one(""))
    return pc.if_else(column.is_null(), pa.scalar(None, body.type), body)


def _escaped(text: pa.Array) -> pa.Array:
    for old, new in _ESCAPES:
        if _any(pc.match_substring(text, old)):
            text = pc.replace_substring(text, old, new)
    return text


def _one(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())
