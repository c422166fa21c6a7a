"""Deliveries to a real PostgreSQL without Spark or a lake: histories of rows as Arrow batches."""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headrace.algebra.schema import Column
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK
from headrace.sinks.sink_kind import Delivery, Json, SinkRequest, Told, Written

ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(12,2)": pa.decimal128(12, 2),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
}

Row = tuple[object, ...]
Change = Sequence[tuple[Row, int]]


@dataclass
class FakeStream:
    """A stream table as a sink sees it: the change of each version."""

    columns: tuple[Column, ...]
    log: list[Change] = field(default_factory=list)
    relation: int = 1
    batch: int = 1000
    log_after: int = 0

    @property
    def version(self) -> int:
        return len(self.log) - 1

    def entries_at(self, version: int) -> list[tuple[Row, int]]:
        """Rows and how often there are; `0.0` and `-0.0` are two."""
        found: dict[str, tuple[Row, int]] = {}
        for change in self.log[: version + 1]:
            for row, weight in change:
                found[repr(row)] = (row, found.get(repr(row), (row, 0))[1] + weight)
        return [(row, count) for row, count in found.values() if count > 0]

    def rows_at(self, version: int) -> Counter[Row]:
        return Counter(dict(self.entries_at(version)))

    def snapshot_at(self, version: int) -> int | None:
        """Another one wherever another history has led there."""
        return zlib.crc32(repr(self.log[: version + 1]).encode()) if version <= self.version else None

    def set_back_to(self, version: int) -> FakeStream:
        """The same stream table in a catalog that was put back."""
        return replace(self, log=self.log[: version + 1])

    def delivery(self, sink: str, name: str = "out", *, version: int | None = None, anew: bool = False) -> Delivery:
        at = self.version if version is None else version
        return Delivery(
            sink=sink,
            name=name,
            stream="shop.revenue",
            relation=self.relation,
            columns=self.columns,
            version=at,
            log="log",
            log_after=self.log_after,
            rows=lambda: self._batches(self.entries_at(at), weights=False),
            changes=lambda after: self._batches([e for c in self.log[after + 1 : at + 1] for e in c], weights=True),
            snapshot_at=self.snapshot_at,
            anew=anew,
        )

    def _batches(self, entries: Sequence[tuple[Row, int]], *, weights: bool) -> Iterator[pa.RecordBatch]:
        if not weights:
            entries = [(row, 1) for row, count in entries for _ in range(count)]
        for start in range(0, len(entries), self.batch):
            part = entries[start : start + self.batch]
            arrays = [pa.array([row[i] for row, _ in part], ARROW[c.type]) for i, c in enumerate(self.columns)]
            names = [c.name for c in self.columns]
            if weights:
                arrays.append(pa.array([w for _, w in part], pa.int64()))
                names.append("__hr_w")
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def options(url: str, table: str = "public.out", key: Sequence[str] = (), **said: str) -> Json:
    return POSTGRES_SINK.options(SinkRequest(url, table, tuple(key), said))


def new_sink() -> str:
    return str(uuid.uuid4())


def deliver(options: Json, delivery: Delivery, told: Told = lambda _: None) -> Written:
    """One delivery in a transaction of its own, as the driver makes it."""
    with POSTGRES_SINK.writing(options, told) as target:
        target.position(delivery.sink)
        return target.deliver(options, delivery)
