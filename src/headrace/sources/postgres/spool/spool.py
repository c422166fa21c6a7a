"""Spools batches and snapshots as Parquet files of text columns, which Spark casts."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from headrace.errors import EnvironmentFault
from headrace.lake.files.file_access import file_system
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.snapshot.completion_markers import CompletionMarkers
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.literal_rows import MOST_ROWS, take_literals
from headrace.sources.postgres.spool.pair_detection import Pairing
from headrace.sources.postgres.spool.release_memory import give_back
from headrace.sources.postgres.spool.text_columns import keyed, text_of, weighed
from headrace.sources.postgres.spool.unfit_values import checked, without_undone
from headrace.sources.postgres.type_mapping import place_of
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges
from headrace.sources.spool_faults import writing

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Mapping[str, Any] = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
"""Of files that are read once, and whole: half the processor time of writing them goes without these two."""


class Spool:
    """A folder for one landing, in the warehouse, where Spark's executors reach it.

    It is nobody else's: a process that was suspended while another one took over its landing writes what nobody reads.

    Args:
        home: Where the source's landings have their folders: a path, or a URL (`file:`, `s3:`).
        few: So many rows need no file.
        ended: Set to have copying end, as what is written is for nobody any more.
    """

    def __init__(self, home: str, *, few: int = MOST_ROWS, ended: threading.Event | None = None) -> None:
        self.ended = threading.Event() if ended is None else ended
        name = uuid.uuid4().hex
        self.folder, self._url = f"{home}/{name}", home
        self._few, self._parts = few, 0
        self._files, self._home = file_system(home)
        self._path = f"{self._home}/{name}"
        self.markers = CompletionMarkers(self._files, self._home, self._path)

    def another(self) -> Spool:
        """Return a spool beside this one, for a thread of its own."""
        return Spool(self._url, few=self._few, ended=self.ended)

    def discard(self, folder: str) -> None:
        """Remove the folder of another landing, as `notes` gave it."""
        self._remove(folder)

    def clear(self) -> None:
        """Remove the spool and free its memory; what cannot be removed now is swept later."""
        self._remove(self._path)
        give_back()

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that never finished.

        Args:
            age: So long nothing was written there; None removes the folders of all landings.
        """
        from pyarrow import fs

        if age is None:
            self._remove(self._home)
            return
        newest: dict[str, dt.datetime] = {}
        with suppress(OSError):
            for file in self._files.get_file_info(fs.FileSelector(self._home, allow_not_found=True, recursive=True)):
                name = file.path.removeprefix(self._home.rstrip("/") + "/").partition("/")[0]
                written = file.mtime or dt.datetime.min.replace(tzinfo=dt.UTC)  # object stores have no times of folders
                newest[name] = max(newest.get(name, written), written)
        for name, written in newest.items():
            if dt.datetime.now(dt.UTC) - written >= age:
                self._remove(f"{self._home}/{name}")

    def size(self) -> int:
        """Return bytes of all landings of the source."""
        from pyarrow import fs

        with suppress(OSError):
            selected = fs.FileSelector(self._home, allow_not_found=True, recursive=True)
            return sum(file.size or 0 for file in self._files.get_file_info(selected))
        return 0

    def _remove(self, path: str) -> None:
        from pyarrow import fs

        with suppress(OSError):
            if self._files.get_file_info(path).type != fs.FileType.NotFound:
                self._files.delete_dir(path)

    def write(self, table: RemoteTable, batches: Iterable[pa.RecordBatch]) -> Spooled:
        """Write batches as a part of a table; a few rows need no file."""
        rest = iter(batches)
        first, text = take_literals(rest, self._few)
        if text is not None:
            return Spooled(None, sum(batch.num_rows for batch in first), literal=text)
        name = self.part(table)
        rows = self.fill(name, 0, chain(first, rest))
        return Spooled(self.folder_of(name) if rows else None, rows)

    def part(self, table: RemoteTable) -> str:
        """Return a name for a part of a table that has none yet."""
        self._parts += 1
        return f"{table.oid}-{self._parts}"

    def folder_of(self, part: str) -> str:
        """Return the folder of a part, for Spark."""
        return f"{self.folder}/{part}"

    def fill(self, part: str, number: int, batches: Iterable[pa.RecordBatch]) -> int:
        """Write batches as a file of a part, by one of several threads; returns how many rows.

        Args:
            part: As `part` named it.
            number: The file's number in it.
            batches: The rows; without any there is no file.
        """
        import pyarrow.parquet as pq

        writer: Any = None
        rows = 0
        with writing(self.folder):
            try:
                for batch in batches:
                    if writer is None:
                        self._files.create_dir(f"{self._path}/{part}", recursive=True)
                        target = f"{self._path}/{part}/{number}.parquet"
                        writer = pq.ParquetWriter(target, batch.schema, filesystem=self._files, **FORMAT)
                    writer.write_batch(batch)
                    rows += batch.num_rows
            finally:
                if writer is not None:
                    writer.close()
        return rows

    def write_changes(self, table: RemoteTable, changes: KeyedChanges | WeighedChanges) -> Spooled:
        """Write the net changes of a table over a batch of transactions.

        Args:
            table: The table.
            changes: Its changes.
        """
        if isinstance(changes, WeighedChanges):
            return self.write_weighed(table, weighed(table, changes), truncated=changes.truncated)
        spooled = self.write(table, checked(table, keyed(table, changes)))
        known, unsent = changes.known, bool(changes.origins)
        return replace(spooled, truncated=changes.truncated, keyed=True, known=known, unsent=unsent)

    def write_weighed(
        self, table: RemoteTable, batches: Iterator[pa.RecordBatch], *, truncated: bool = False
    ) -> Spooled:
        """Write rows with weights.

        Args:
            table: The table.
            batches: Its rows as text, with their weights.
            truncated: Whether the table was emptied before: then these rows alone are not the whole change.

        Raises:
            EnvironmentFault: `VALUE_NOT_REPRESENTABLE` for a row that came, did not go again, and does not fit.
        """
        pairing = Pairing(table)
        fitting = (with_arrays(table, batch) for batch in without_undone(table, batches))
        spooled = self.write(table, pairing.passing(fitting))
        read = None if spooled.folder is None else partial(self._column, spooled.folder)
        return replace(spooled, truncated=truncated, distinct=not truncated and pairing.settled(read))

    def _column(self, folder: str, name: str) -> pa.ChunkedArray:
        """Return a column of a part that one file has."""
        import pyarrow.parquet as pq

        path = f"{self._path}{folder.removeprefix(self.folder)}"
        return pq.read_table(f"{path}/0.parquet", columns=[name], filesystem=self._files).column(name)


Reader = Callable[[], bytes | bytearray | memoryview]
"""Gives the next piece of a COPY, which has whole rows: the server sends each row as a message; empty at the end."""

BLOCK = 4 << 20
"""Bytes of text that are turned into columns at once, about; a row is never cut, however large it is."""


def csv_batches(table: RemoteTable, read: Reader) -> Iterator[pa.RecordBatch]:
    """Yield the output of `COPY … TO STDOUT (FORMAT csv)` as batches for Spark.

    Columns are texts, those of arrays lists of texts.

    Args:
        table: The table whose columns are sent.
        read: Gives the pieces.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE`.
    """
    for batch in checked(table, csv_texts(table, read)):
        yield with_arrays(table, batch)


def csv_texts(table: RemoteTable, read: Reader, leading: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the output of `COPY … TO STDOUT (FORMAT csv)` as batches of texts.

    NULL is nothing between two commas, the empty text is `""`.

    Args:
        table: The table whose columns are sent.
        read: Gives the pieces.
        leading: Names of columns of integers that are sent before them.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE` for text that is not UTF-8.
    """
    import pyarrow as pa
    from pyarrow import csv

    texts = [place_of(i) for i in range(len(table.columns))]
    names = [*leading, *texts]
    parsed = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    converted = csv.ConvertOptions(
        column_types=dict.fromkeys(texts, pa.string()) | dict.fromkeys(leading, pa.int64()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    for block in _blocks(read):
        # a block of Arrow's must hold the whole of ours: it does not look for the end of a row in the next one
        whole = csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
        try:
            batches = csv.read_csv(pa.BufferReader(block), whole, parsed, converted).to_batches()
        except pa.ArrowInvalid as error:
            raise _unreadable(table, error) from error
        yield from batches


def _blocks(read: Reader) -> Iterator[bytes]:
    """Yield parts of a COPY joined to blocks large enough for Arrow."""
    block = bytearray()
    while piece := read():
        block += piece
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _unreadable(table: RemoteTable, error: pa.ArrowInvalid) -> EnvironmentFault:
    return EnvironmentFault(
        "VALUE_NOT_REPRESENTABLE",
        f"A row of {table} has a value that the mirror cannot hold; nothing was landed.",
        detail=str(error),
        hint="Correct the value: text must be UTF-8.",
    )


def with_arrays(table: RemoteTable, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with lists of texts for arrays that are texts yet."""
    import pyarrow as pa

    arrays = [i for i, c in enumerate(table.columns) if c.kept.array]
    texts = [i for i in arrays if pa.types.is_string(batch.column(place_of(i)).type)]
    if not texts:
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for number in texts:
        values = columns[place_of(number)].cast(pa.binary())
        columns[place_of(number)] = text_of(values, table, number)
    return pa.RecordBatch.from_pydict(columns)
