"""Narrows a scan to some data files.

Iceberg does not skip files by a condition on `_file`: a scan that wants the rows deleted from one file reads all of
them. It does skip files, and row groups, by the bounds of columns. So a column is looked for in whose bounds the wanted
files overlap with few others, and what it can be in them is added to the condition; where files are in no order, there
is none, and all are read as before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headrace.lake.metadata import TableMeta
from headrace.names import quote
from headrace.sources.lakehouse.manifests import live_files, manifest_list, manifests

MOST_BYTES = 2**20
"""Manifests of more bytes than that together, some 2,000 files, are not looked through: it would take seconds."""

WORTH = 0.7
"""A larger part of all rows is read as it is; conditions cost something, too."""

_EPOCH = dt.date(1970, 1, 1).toordinal()
_TYPES = ("int", "bigint", "date")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _File:
    """Path and bounds of a data file, as in its manifest.

    Args:
        rows: Its rows.
        spans: Lowest and highest values of columns of numbers and dates, by field id.
        whole: Field ids of columns without NULL.
    """

    rows: int
    spans: Mapping[int, Span]
    whole: frozenset[int]


def narrowing(meta: TableMeta, snapshot: int, files: Collection[str]) -> str | None:
    """Return a condition that all rows of some files satisfy, and few rows of other files.

    Args:
        meta: The table.
        snapshot: The snapshot that is read; it has these files.
        files: Their paths.

    Returns:
        None where no column tells them from others, or where that cannot be found out.
    """
    try:
        live = _live(meta, snapshot) if files else None
    except (OSError, ValueError, KeyError):
        return None
    if live is None or not live.keys() >= set(files):
        return None
    wanted, rows = [live[path] for path in files], sum(file.rows for file in live.values())
    read, found = WORTH * rows, None
    schema = meta.schema_at(snapshot)
    for column, number in zip(meta.schemas[schema], meta.field_ids[schema], strict=True):
        spans = [file.spans[number] for file in wanted if number in file.spans]
        if column.type not in _TYPES or len(spans) < len(wanted):
            continue
        low, high = min(span[0] for span in spans), max(span[1] for span in spans)
        whole = all(number in file.whole for file in wanted)
        others = sum(file.rows for file in live.values() if _may_have(file, number, low, high, whole=whole))
        if others < read and (condition := _condition(column.name, column.type, low, high, whole=whole)):
            read, found = others, condition
    return found


def _live(meta: TableMeta, snapshot: int) -> dict[str, _File] | None:
    """Return the data files of a snapshot; None where they are too many to be looked at."""
    listed = [entry for entry in manifests(manifest_list(meta, snapshot)) if not entry.get("content")]
    if sum(entry["manifest_length"] for entry in listed) > MOST_BYTES:
        return None
    return {path: file for entry in listed for path, file in _files_of(entry["manifest_path"]).items()}


@lru_cache(maxsize=256)
def _files_of(manifest: str) -> dict[str, _File]:
    """Return the live files of a manifest, which is never written again."""
    return {file["file_path"]: _file(file) for file in live_files(manifest)}


def _file(data: Mapping[str, Any]) -> _File:
    low, high = (dict(_numbers(data.get(name))) for name in ("lower_bounds", "upper_bounds"))
    nulls = {entry["key"]: entry["value"] for entry in data.get("null_value_counts") or ()}
    spans = {number: (low[number], high[number]) for number in low.keys() & high.keys()}
    return _File(data["record_count"], spans, frozenset(number for number, count in nulls.items() if not count))


def _numbers(bounds: Any) -> Iterator[tuple[int, int]]:
    """Yield bounds of four or eight bytes as integers; the column's type says if they are."""
    # Avro has no maps with integer keys: Iceberg writes them as arrays of entries.
    for entry in bounds or ():
        if len(entry["value"]) in (4, 8):
            yield entry["key"], int.from_bytes(entry["value"], "little", signed=True)


def _may_have(file: _File, number: int, low: int, high: int, *, whole: bool) -> bool:
    """Return whether Iceberg has to read a file."""
    span = file.spans.get(number)
    return span is None or (span[0] <= high and span[1] >= low) or not (whole or number in file.whole)


def _condition(name: str, type_: str, low: int, high: int, *, whole: bool) -> str | None:
    ends = [_literal(value, type_) for value in (low, high)]
    if None in ends:
        return None
    between = f"{quote(name)} BETWEEN {ends[0]} AND {ends[1]}"
    return between if whole else f"({between} OR {quote(name)} IS NULL)"


def _literal(value: int, type_: str) -> str | None:
    if type_ == "date":
        day = value + _EPOCH
        return f"DATE '{dt.date.fromordinal(day)}'" if 1 <= day <= dt.date.max.toordinal() else None
    # the lowest of 64 bits is no literal with a sign before it
    return f"{value}L" if value > -(2**63) else None
