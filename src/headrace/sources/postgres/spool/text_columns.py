"""Turns the net changes of a batch into columns of text, for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.spool.landing_sql import KNOWN, LIVE, UNSENT, WEIGHED, origin_of
from headrace.sources.postgres.type_mapping import parse_array, place_of
from headrace.sources.postgres.wal.bulk_changes import KeyedBulk, PlacedRows, left_of
from headrace.sources.postgres.wal.net_changes import Key, KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.pgoutput import UNCHANGED, Packed, Values
from headrace.sources.postgres.wal.pgoutput_columns import Bytes, Places

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK, CHUNK_BYTES = 50_000, 8 << 20
"""Rows that are turned into columns at once, and their bytes, about: on the way they need sixteen times as much."""

Row = Values | Packed | None
T = TypeVar("T")


def weighed(table: RemoteTable, changes: WeighedChanges) -> Iterator[pa.RecordBatch]:
    """Yield rows that were added and removed, as text with weights 1 and −1."""
    for rows, bulks, weight in ((changes.added, changes.came, 1), (changes.removed, changes.went, -1)):
        for bulk in bulks:
            yield _with_weight(_columns_at(table, bulk, bulk.at), len(bulk), weight)
        for part in _chunks(rows, _bytes_of):
            if packed := [row for row in part if isinstance(row, bytes)]:
                yield _with_weight(unpacked_columns(table, packed), len(packed), weight)
            if listed := [row for row in part if isinstance(row, list)]:
                yield _with_weight(columns_of(table, listed), len(listed), weight)


def _with_weight(columns: dict[str, pa.Array], count: int, weight: int) -> pa.RecordBatch:
    import pyarrow as pa

    columns[WEIGHED] = pa.array(np.full(count, weight, np.int32))
    return pa.RecordBatch.from_pydict(columns)


def keyed(table: RemoteTable, changes: KeyedChanges) -> Iterator[pa.RecordBatch]:
    """Yield the last row of each changed key as text, and what is known of its former row."""
    if changes.bulk:
        yield from _bulk(table, changes.bulk)
    for part in _chunks(changes.rows.items(), lambda item: _bytes_of(item[1])):
        gone = [key for key, row in part if row is None]
        packed = {key: row for key, row in part if isinstance(row, bytes)}
        listed = {key: row for key, row in part if isinstance(row, list)}
        if gone:
            yield _batch(changes, table, gone, _keys_only(table, changes, gone), live=False)
        if packed:
            yield _batch(changes, table, list(packed), unpacked_columns(table, list(packed.values())))
        if listed:
            rows = list(listed.values())
            unsent = _replace_unsent(rows) if changes.origins else {}
            yield _batch(changes, table, list(listed), columns_of(table, rows), unsent)


def _bulk(table: RemoteTable, bulks: Sequence[KeyedBulk]) -> Iterator[pa.RecordBatch]:
    """Yield what is left of messages that were held together."""
    import pyarrow as pa

    for bulk, left in zip(bulks, left_of(bulks), strict=True):
        for places, live in ((left.live, True), (left.gone, False)):
            if len(places):
                columns = _columns_at(table, bulk.rows, bulk.rows.at[places])
                columns[LIVE] = pa.array(np.full(len(places), live))
                columns[KNOWN] = pa.array(~left.fresh[places])
                yield pa.RecordBatch.from_pydict(columns)


def _batch(
    changes: KeyedChanges,
    table: RemoteTable,
    keys: Sequence[Key],
    columns: dict[str, pa.Array],
    unsent: Mapping[int, list[int]] | None = None,
    *,
    live: bool = True,
) -> pa.RecordBatch:
    import pyarrow as pa

    columns[LIVE] = pa.array([live] * len(keys))
    columns[KNOWN] = pa.array([key not in changes.fresh for key in keys])
    if changes.origins:
        places = unsent or {}
        columns[UNSENT] = pa.array([places.get(i) for i in range(len(keys))], pa.list_(pa.int32()))
        nothing = (None,) * len(changes.key)
        origins = zip(*(changes.origins.get(key) or nothing for key in keys), strict=True)
        for number, texts in enumerate(origins):
            columns[origin_of(number)] = text_column(texts, table, changes.key[number])
    return pa.RecordBatch.from_pydict(columns)


def unpacked_columns(table: RemoteTable, rows: Sequence[Packed]) -> dict[str, pa.Array]:
    """Return rows as columns of text.

    Args:
        table: The table.
        rows: Its rows as the server sent them.
    """
    found = Bytes.of(rows)
    columns, _ = found.rows(found.starts, len(table.columns))
    return {place_of(i): text_of(found.binary(column), table, i) for i, column in enumerate(columns)}


def _columns_at(table: RemoteTable, rows: PlacedRows, at: Places) -> dict[str, pa.Array]:
    """Return the rows that begin at some places as columns of text."""
    columns, _ = rows.messages.rows(at, len(table.columns))
    return {place_of(i): text_of(rows.messages.binary(column), table, i) for i, column in enumerate(columns)}


def columns_of(table: RemoteTable, rows: Sequence[Values]) -> dict[str, pa.Array]:
    """Return rows as columns of text.

    Args:
        table: The table.
        rows: Its rows, value by value.
    """
    turned = zip(*rows, strict=True) if rows else ((),) * len(table.columns)
    return {place_of(i): text_column(values, table, i) for i, values in enumerate(turned)}


def _keys_only(table: RemoteTable, changes: KeyedChanges, keys: Sequence[Key]) -> dict[str, pa.Array]:
    """Return deleted rows, of which no more than the key counts."""
    import pyarrow as pa

    known = dict(zip(changes.key, zip(*keys, strict=True), strict=True))
    nothing = pa.nulls(len(keys), pa.binary())
    return {
        place_of(i): text_column(known[i], table, i) if i in known else text_of(nothing, table, i)
        for i in range(len(table.columns))
    }


def text_column(values: Sequence[Any], table: RemoteTable, number: int) -> pa.Array:
    """Return values of one column as Arrow text; see `text_of`."""
    import pyarrow as pa

    return text_of(pa.array(values, pa.binary()), table, number)


def text_of(values: pa.Array, table: RemoteTable, number: int) -> pa.Array:
    """Return the bytes of one column as Arrow text, or lists of text for arrays.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE` for arrays of several dimensions, and text that is not UTF-8.
    """
    import pyarrow as pa

    column = table.columns[number]
    try:
        if not column.kept.array:
            return values.cast(pa.string())
        literals = values.to_pylist()
        lists = [None if v is None else parse_array(v) for v in literals]
        if any(found is None and v is not None for found, v in zip(lists, literals, strict=True)):
            raise _unfit(table, column.name, "an array of several dimensions, or with other bounds")
        return pa.array(lists, pa.list_(pa.binary())).cast(pa.list_(pa.string()))
    except pa.ArrowInvalid as error:
        raise _unfit(table, column.name, "text that is not UTF-8") from error


def _unfit(table: RemoteTable, column: str, what: str) -> EnvironmentFault:
    return EnvironmentFault(
        "VALUE_NOT_REPRESENTABLE",
        f"Column {column} of {table} has a value that the mirror cannot hold; nothing was landed.",
        detail=f"It is {what}.",
        hint="Correct the value, or create the source again with this column among TEXT COLUMNS (…).",
    )


def _replace_unsent(rows: list[Values]) -> dict[int, list[int]]:
    """Take the stand-ins of unsent values out of rows, and say where they were."""
    found = {}
    for number, row in enumerate(rows):
        if UNCHANGED in row:
            found[number] = [i for i, value in enumerate(row) if value is UNCHANGED]
            rows[number] = [None if value is UNCHANGED else value for value in row]
    return found


def _bytes_of(row: Row) -> int:
    """Return the approximate size of a row."""
    if isinstance(row, bytes):
        return len(row)
    return sum(len(value) for value in row or () if isinstance(value, bytes))


def _chunks(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield items in lists of at most CHUNK, and of little more than CHUNK_BYTES."""
    rest = iter(items)
    while part := list(islice(rest, CHUNK)):
        full = np.fromiter(map(size, part), np.int64, len(part)).cumsum() // CHUNK_BYTES
        for start, end in pairwise((0, *(np.flatnonzero(np.diff(full)) + 1).tolist(), len(part))):
            yield part[start:end]
