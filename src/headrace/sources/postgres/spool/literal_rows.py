"""Few spooled rows as SQL literals, which Spark plans with and reads without a file.

A landing of a second of a busy shop has some hundred rows. As a file they cost two jobs more than they are worth: one
that looks for the file's columns, and one that reads it, for each time that the statement names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS, MOST_BYTES = 500, 64 << 10
"""Of more, reading the statement would take longer than reading a file."""

_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;+\-*/@#=<>()\[\]|~!?&]*")
"""Text that means itself in a literal, whatever the session's options: no quote, backslash, or `$` of a variable."""

_TYPES = {"string": "STRING", "bool": "BOOLEAN", "int32": "INT"}
"""Of columns that become literals, by their name in Arrow."""


def take_literals(batches: Iterator[pa.RecordBatch], most: int = MOST_ROWS) -> tuple[list[pa.RecordBatch], str | None]:
    """Take batches while they are few rows.

    Args:
        batches: From which they are taken.
        most: So many rows are few.

    Returns:
        What was taken, and SQL of its rows if that is all there is; None where there is nothing, or more, or other.
    """
    taken: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        taken.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > most or size > MOST_BYTES or any(str(t) not in _TYPES for t in batch.schema.types):
            return taken, None
    if not rows or any(batch.schema != taken[0].schema for batch in taken):
        return taken, None
    return taken, rows_sql(taken)


def rows_sql(batches: list[pa.RecordBatch]) -> str:
    """Return rows as a table expression with the columns' names and types."""
    schema = batches[0].schema
    listed = ", ".join(f"CAST({f.name} AS {_TYPES[str(f.type)]}) AS {f.name}" for f in schema)
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    values = ", ".join(f"({', '.join(map(value_sql, row))})" for row in rows)
    return f"(SELECT {listed} FROM VALUES {values} AS v({', '.join(schema.names)}))"


def value_sql(value: str | bool | int | None) -> str:
    """Return a value as a literal."""
    if isinstance(value, str):
        return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex()}' AS STRING)"
    if value is None:
        return "NULL"
    return str(value).lower()
