"""Reads what sinks are brought to: stream tables at one moment of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, Pointer, Sink, StreamTable, Version
from headrace.definitions.details import from_json
from headrace.errors import UserError
from headrace.lake.arrow_rows import log_rows, state_rows
from headrace.lake.change_logs import complete_after
from headrace.names import LAKE, TableName
from headrace.refresh.cut.cut import metadata
from headrace.sinks.sink_kind import Delivery

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SinkCut:
    """The catalog at one moment, as far as sinks read it.

    Args:
        tables: Stream tables, by name.
        versions: Their newest versions.
        pointers: Metadata files of their states and change logs.
        positions: Versions of them that sinks have, as far as there are such.
    """

    tables: Mapping[TableName, StreamTable]
    versions: Mapping[TableName, Version]
    pointers: Mapping[TableName, Pointer]
    positions: Mapping[tuple[TableName, int], Version]

    def delivery(self, sink: Sink, *, anew: bool = False) -> Delivery | None:
        """Return what a sink is to be brought to; None while its stream table was never loaded."""
        table, version = self.tables[sink.stream], self.versions.get(sink.stream)
        if version is None:
            return None
        columns = columns_of(table)
        return Delivery(
            sink=sink.uuid,
            name=sink.name,
            stream=str(table.name),
            relation=table.id,
            columns=columns,
            version=version.version,
            log=None if table.log is None else str(table.log),
            log_after=0 if table.log is None else complete_after(metadata(self._file(table.log))),
            rows=lambda: self._rows(table, version.snapshot_id, columns),
            changes=lambda after: self._changes(table, columns, after, version.version),
            snapshot_at=lambda at: self._snapshot(table, at),
            anew=anew,
        )

    def _snapshot(self, table: StreamTable, at: int) -> int | None:
        newest = self.versions[table.name]
        version = newest if at == newest.version else self.positions.get((table.name, at))
        return None if version is None else version.snapshot_id or 0

    def rows_at(self, stream: TableName, version: Version) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a stream table at a version.

        Raises:
            UserError: `HISTORY_EXPIRED`.
        """
        return self._rows(self.tables[stream], version.snapshot_id, columns_of(self.tables[stream]))

    def _rows(self, table: StreamTable, snapshot: int | None, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        return state_rows(self._file(table.name), snapshot, [c.name for c in columns])

    def _changes(
        self, table: StreamTable, columns: Sequence[Column], after: int, through: int
    ) -> Iterator[pa.RecordBatch]:
        assert table.log is not None, "changes are asked for where there is a change log"
        return log_rows(self._file(table.log), [c.name for c in columns], after, through)

    def _file(self, stored: TableName) -> str:
        if stored not in self.pointers:
            raise UserError("TABLE_NOT_FOUND", f"Table {stored} does not exist.")
        return self.pointers[stored].metadata_location


def columns_of(table: StreamTable) -> tuple[Column, ...]:
    """Return a stream table's columns."""
    return tuple(from_json(table.details).output)


def sink_cut(catalog: Catalog, streams: Mapping[TableName, Collection[int]]) -> SinkCut:
    """Read what sinks are brought to, from one state of the catalog.

    Args:
        catalog: The catalog.
        streams: Their stream tables, and the versions of these that they have.
    """
    with catalog.reading() as reader:
        tables = {t.name: t for t in reader.stream_tables() if t.name in streams}
        newest = reader.newest_versions()
        stored = [name for t in tables.values() for name in (t.name, t.log) if name is not None]
        pointers = reader.pointers(LAKE, stored)
        positions = {(v.relation, v.version): v for v in reader.each_version_at(streams)}
    return SinkCut(tables, {n: newest[n] for n in tables if n in newest}, pointers, positions)
