"""Reads an Iceberg table's metadata file: what its snapshots are, without a Spark job."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from headrace.algebra.schema import Column, finding
from headrace.errors import EnvironmentFault
from headrace.lake.files.file_access import read_file
from headrace.lake.iceberg_types import ddl_type
from headrace.lakes.store_errors import store_error

Json = dict[str, Any]

METADATA_UNREADABLE = "METADATA_UNREADABLE"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a table.

    Args:
        id: Iceberg snapshot id.
        parent_id: The snapshot it was made from; None for a first one.
        sequence_number: Order of commits within the table.
        operation: `append`, `overwrite`, `delete` or `replace`.
        timestamp_ms: Commit time, milliseconds since 1970 UTC.
        schema_id: The schema current when it was committed.
        summary: Iceberg's counters (`added-records`, `total-records`, …), as text.
        manifest_list: Location of its manifest list.
    """

    id: int
    parent_id: int | None
    sequence_number: int
    operation: str
    timestamp_ms: int
    schema_id: int | None
    summary: Mapping[str, str]
    manifest_list: str | None = None

    def count(self, counter: str) -> int:
        """Return a summary counter, 0 when absent."""
        return int(self.summary.get(counter, "0"))

    @property
    def rows(self) -> int | None:
        """Return the number of rows of this snapshot; None when counters are not exact.

        Deletion vectors count every deleted position once. Position delete files (format v2) may count some twice
        or outlive their data file, and equality deletes count conditions, not rows; with those the sum is not known.
        """
        if "total-records" not in self.summary or self.count("total-equality-deletes"):
            return None
        deleted = self.count("total-position-deletes")
        return self.count("total-records") - deleted

    @property
    def rows_added(self) -> int:
        """Return by how many rows this snapshot differs from its parent, by its counters."""
        files = self.count("added-records") - self.count("deleted-records")
        return files - self.count("added-position-deletes") + self.count("removed-position-deletes")


@dataclass(frozen=True, slots=True)
class TableMeta:
    """An Iceberg table as read from one metadata file.

    Args:
        metadata_location: The file this was read from.
        uuid: The table's identity; a dropped and recreated table has another one.
        location: Root folder of the table.
        format_version: 1, 2 or 3.
        current_snapshot_id: None for a table without a snapshot.
        snapshots: By id.
        schemas: Columns by schema id; each column's field id stands at the same place in `field_ids`.
        field_ids: Iceberg field ids by schema id.
        schema_id: The current schema's id.
        refs: Branches and tags: name to snapshot id.
        properties: Table properties.
        fields: By schema id the columns as the file has them, with the ids of nested fields.
    """

    metadata_location: str
    uuid: str
    location: str
    format_version: int
    current_snapshot_id: int | None
    snapshots: Mapping[int, Snapshot]
    schemas: Mapping[int, tuple[Column, ...]]
    field_ids: Mapping[int, tuple[int, ...]]
    schema_id: int
    refs: Mapping[str, int]
    properties: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[int, tuple[Json, ...]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return columns of the current schema."""
        return self.schemas[self.schema_id]

    def ids_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return field ids of columns in the order of `names`; empty if one is missing."""
        return tuple(ids[0] for ids in self.nested_ids_of(names))

    def nested_ids_of(self, names: Iterable[str]) -> tuple[tuple[int, ...], ...]:
        """Return field ids as `ids_of` does, each followed by those of its nested fields."""
        fields = self.fields.get(self.schema_id, ())
        found = list(map(finding((f["name"], (f["id"], *_nested_ids(f["type"]))) for f in fields), names))
        return () if None in found else tuple(ids for ids in found if ids is not None)

    def has_kept(self, names: Iterable[str], snapshot_id: int | None) -> bool:
        """Return whether no column was dropped, or added again, since a snapshot."""
        then, now = self._ids(self.schema_at(snapshot_id)), self._ids(self.schema_id)
        return all(then(name) == now(name) for name in names)

    def _ids(self, schema: int) -> Callable[[str], int | None]:
        columns = zip(self.schemas[schema], self.field_ids[schema], strict=True)
        return finding((column.name, field_id) for column, field_id in columns)

    @property
    def current(self) -> Snapshot | None:
        """Return the current snapshot."""
        return None if self.current_snapshot_id is None else self.snapshots.get(self.current_snapshot_id)

    @property
    def row_count(self) -> int | None:
        """Return the present number of rows; None when counters are not exact."""
        if self.current is None:
            return 0
        rows = self.current.rows
        has_deletes = self.current.count("total-position-deletes") > 0
        return None if has_deletes and self.format_version < 3 else rows

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its known ancestors, newest first."""
        while snapshot_id is not None and (snapshot := self.snapshots.get(snapshot_id)):
            yield snapshot
            snapshot_id = snapshot.parent_id

    def schema_at(self, snapshot_id: int | None) -> int:
        """Return the schema id a read of this snapshot has."""
        snapshot = self.snapshots.get(snapshot_id) if snapshot_id is not None else None
        if snapshot is None or snapshot.schema_id is None or snapshot.schema_id not in self.schemas:
            return self.schema_id
        return snapshot.schema_id

    def snapshot_at(self, time: dt.datetime) -> Snapshot | None:
        """Return the newest snapshot of the current line committed at or before `time`."""
        limit = time.timestamp() * 1000
        return next((s for s in self.ancestors(self.current_snapshot_id) if s.timestamp_ms <= limit), None)


def read_metadata(location: str, *, former: TableMeta | None = None) -> TableMeta:
    """Read a metadata file.

    Args:
        location: Path or URL of the `…metadata.json` file, plain or gzipped.
        former: Another state of the table, with which snapshots are shared.

    Raises:
        EnvironmentFault: `METADATA_UNREADABLE` (retryable) when the file is missing, unreachable or damaged.
    """
    data = read_json(location)
    try:
        return parse_metadata(location, data, former)
    except (KeyError, ValueError, TypeError, AttributeError) as error:  # JSON of something else
        raise unreadable(location, error) from error


def read_json(location: str) -> Json:
    """Read a metadata file of a table or a view; arguments and errors as `read_metadata`."""
    try:
        data = read_bytes(location)
        parsed: Json = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        return parsed
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise unreadable(location, error) from error


def unreadable(location: str, error: Exception) -> EnvironmentFault:
    """Return the error for a table's file that cannot be read.

    Args:
        location: The file.
        error: The reason.
    """
    return store_error(error) or EnvironmentFault(
        METADATA_UNREADABLE,
        f"The table metadata at {location} cannot be read.",
        detail=f"{type(error).__name__}: {error}",
        hint="Check that the warehouse is reachable. Where a file of a stream table or mirror is lost, "
        "`headrace repair` makes it anew.",
        retryable=True,
    )


def local_path(location: str) -> Path | None:
    """Return the local path behind a location, None when it is elsewhere."""
    if location.startswith("/"):
        return Path(location)
    url = urlparse(location)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return Path(unquote(url.path))
    return None


def read_bytes(location: str) -> bytes:
    """Return the contents of a file of a table, wherever it is."""
    path = local_path(location)
    if path is not None:  # opening the file directly is ten times faster than going through a FileIO
        return path.read_bytes()
    return read_file(location)


def parse_metadata(location: str, data: Json, former: TableMeta | None = None) -> TableMeta:
    """Parse a metadata file; reuse the snapshots of a former one of the same table."""
    known = former.snapshots if former is not None and former.uuid == data.get("table-uuid") else {}
    schemas = data.get("schemas") or [data["schema"]]
    current = data.get("current-snapshot-id")
    return TableMeta(
        metadata_location=location,
        uuid=data.get("table-uuid") or data.get("view-uuid", ""),  # a view in a table's place is another one
        location=data["location"],
        format_version=data["format-version"],
        current_snapshot_id=None if current in (None, -1) else current,
        snapshots={(n := s["snapshot-id"]): known.get(n) or _snapshot(s) for s in data.get("snapshots") or ()},
        schemas={s.get("schema-id", 0): tuple(map(_column, s["fields"])) for s in schemas},
        field_ids={s.get("schema-id", 0): tuple(f["id"] for f in s["fields"]) for s in schemas},
        schema_id=data.get("current-schema-id", 0),
        refs={name: ref["snapshot-id"] for name, ref in (data.get("refs") or {}).items()},
        properties=data.get("properties") or {},
        fields={s.get("schema-id", 0): tuple(s["fields"]) for s in schemas},
    )


def _nested_ids(type_: Any) -> Iterator[int]:
    """Yield the ids of the fields of a type as metadata's JSON has it, and of theirs."""
    if not isinstance(type_, Mapping):
        return
    for each in type_.get("fields", ()):
        yield each["id"]
        yield from _nested_ids(each["type"])
    for part in ("key", "value", "element"):
        if part in type_:
            yield type_[f"{part}-id"]
            yield from _nested_ids(type_[part])


def _column(field: Json) -> Column:
    return Column(field["name"], ddl_type(field["type"]), not field["required"])


def _snapshot(data: Json) -> Snapshot:
    summary: dict[str, str] = data.get("summary") or {}
    return Snapshot(
        id=data["snapshot-id"],
        parent_id=data.get("parent-snapshot-id"),
        sequence_number=data.get("sequence-number", 0),
        operation=summary.get("operation", "overwrite"),
        timestamp_ms=data["timestamp-ms"],
        schema_id=data.get("schema-id"),
        summary=summary,
        manifest_list=data.get("manifest-list"),
    )
