"""Copies tables as they are in an exported snapshot: large ones in parts, several at a time.

Parts are ranges of pages (TID range scans), so that none reads what belongs to another one. Each is a COPY, and those
of several connections see the same snapshot. Small tables are copied one after the other over a single connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

from psycopg import Copy, sql

from headrace.names import TableName
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.setup.projection import condition
from headrace.sources.postgres.snapshot.copy_ledger import Ledger, Range
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.spool import Spool, csv_batches
from headrace.sources.postgres.triggers.transaction_snapshots import show

PART_PAGES = 8192
"""Pages of a part at least, 64 MiB: smaller tables are not worth a connection."""

CONNECTIONS = 4
"""Connections that copy at the same time, at most."""

PART_COUNT = 4 * CONNECTIONS
"""Parts of one table at most: more of them than connections, so that these end at about the same time."""

Told = Callable[[str], None]
"""Told how far copying is, in words."""

TELL_SECONDS = 1.0
"""Time between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A table or a range of its pages, read by one COPY.

    Args:
        name: The mirror.
        table: The table.
        first: The first page; None for the whole table.
        end: The page after the last one; None where it goes on to the end.
    """

    name: TableName
    table: RemoteTable
    first: int | None = None
    end: int | None = None

    @property
    def range(self) -> Range:
        """Return its pages."""
        return self.first, self.end

    @property
    def query(self) -> sql.Composed:
        """Return the COPY."""
        table, where = self.table, [condition(self.table)]
        if self.first is not None:
            where.append(sql.SQL("ctid >= {}").format(sql.Literal(f"({self.first},0)")))
        if self.end is not None:
            where.append(sql.SQL("ctid < {}").format(sql.Literal(f"({self.end},0)")))
        return sql.SQL("COPY (SELECT {} FROM {}{} WHERE {}) TO STDOUT (FORMAT csv)").format(
            sql.SQL(", ").join(sql.Identifier(c.name) for c in table.columns),
            sql.SQL("" if table.partitioned else "ONLY "),
            sql.Identifier(table.schema, table.name),
            sql.SQL(" AND ").join(where),
        )


def pieces(
    tables: Mapping[TableName, RemoteTable], pages: Mapping[int, int], ledger: Ledger | None = None
) -> tuple[Piece, ...]:
    """Cut tables into parts that are copied side by side.

    Args:
        tables: Tables by mirror.
        pages: Pages of each table by oid.
        ledger: What an earlier attempt has copied: such tables are cut as they were.
    """
    found: list[Piece] = []
    for name, table in tables.items():
        if ledger is not None and (cut := ledger.cut(name, table)) is not None:
            found += [Piece(name, table, *of) for of in cut]
            continue
        count = min(PART_COUNT, pages.get(table.oid, 0) // PART_PAGES)
        edges = [round(pages[table.oid] * n / count) for n in range(count)] if count > 1 else []
        ends: list[int | None] = [*edges[1:], None]
        found += [Piece(name, table, *of) for of in zip(edges, ends, strict=True)] if edges else [Piece(name, table)]
    return tuple(found)


@dataclass(slots=True)
class _Progress:
    """Counts rows of all connections, and reports progress now and then."""

    told: Told
    expected: int
    rows: int = 0
    failed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: float = field(default_factory=lambda: time.monotonic() + TELL_SECONDS)

    def add(self, rows: int) -> None:
        with self._lock:
            self.rows += rows
            if time.monotonic() < self._next:
                return
            self._next, text = time.monotonic() + TELL_SECONDS, f"copy: {self.rows:,} rows"
        self.told(f"{text} of about {self.expected:,}" if self.expected >= self.rows else text)


def copied(
    url: str,
    snapshot: str,
    tables: Mapping[TableName, RemoteTable],
    spool: Spool,
    told: Told = lambda _: None,
    ledger: Ledger | None = None,
) -> dict[TableName, Spooled]:
    """Write the rows of tables to files.

    Args:
        url: The connection string.
        snapshot: The exported snapshot; it must stay open meanwhile.
        tables: The tables, by the names of their mirrors.
        spool: Where files are written.
        told: Told about once a second how far it is.
        ledger: Told which parts are whole, and knows those that are already.

    Raises:
        HeadraceError: The first failure of any connection; the others have stopped then.
    """
    with reading(url, snapshot) as connection:
        pages, expected = _sizes(connection, [t.oid for t in tables.values()])
        parts = pieces(tables, pages, ledger)
        folders = {name: spool.part(table) for name, table in tables.items()}
        rows = {} if ledger is None else ledger.begin(tables, [(p.name, p.range) for p in parts], folders)
        progress = _Progress(told, expected, sum(rows.values()))
        if rows:
            told(f"copy: goes on, {len(rows)} of {len(parts)} parts are there")
        numbered = [(number, piece) for number, piece in enumerate(parts) if number not in rows]
        copy = _Copying(spool, folders, progress, ledger)
        if len(parts) == len(tables):
            rows |= {number: copy.one(connection, piece, number) for number, piece in numbered}
        else:
            rows |= _side_by_side(url, snapshot, numbered, copy)
    total = dict.fromkeys(tables, 0)
    for number, piece in enumerate(parts):
        total[piece.name] += rows[number]
    return {name: Spooled(spool.folder_of(folders[name]) if total[name] else None, total[name]) for name in tables}


def _side_by_side(url: str, snapshot: str, numbered: Sequence[tuple[int, Piece]], copy: _Copying) -> dict[int, int]:
    waiting, rows = iter(numbered), dict[int, int]()
    lock, progress, count = threading.Lock(), copy.progress, min(CONNECTIONS, len(numbered))
    if not numbered:
        return rows

    def work() -> None:
        try:
            with reading(url, snapshot) as connection:
                while not progress.failed.is_set():
                    with lock:
                        number, piece = next(waiting, (-1, None))
                    if piece is None:
                        return
                    rows[number] = copy.one(connection, piece, number)
        except BaseException:
            progress.failed.set()
            raise

    with ThreadPoolExecutor(count, thread_name_prefix="headrace-copy") as pool:
        finish([pool.submit(copy_context().run, work) for _ in range(count)], progress.failed)
    return rows


class Abandoned(Exception):
    """Another connection failed, or nobody waits any more."""


def finish(workers: Sequence[Future[None]], failed: threading.Event) -> None:
    """Wait for threads; all end once one of them has failed, or the wait was interrupted.

    Args:
        workers: They set `failed` when they fail, and end by `Abandoned` when it is set.
        failed: Set on an interrupt, too.
    """
    try:
        errors = [error for worker in workers if (error := worker.exception()) is not None]
    except BaseException:  # an interrupt
        failed.set()
        raise
    for error in sorted(errors, key=lambda e: isinstance(e, Abandoned)):
        raise error


def reader(copy: Copy, *ended: threading.Event) -> Callable[[], bytes | bytearray | memoryview]:
    """Make a function that reads a COPY until one of some events is set.

    Raises:
        Abandoned: It is set.
    """

    def read() -> bytes | bytearray | memoryview:
        if any(event.is_set() for event in ended):
            raise Abandoned
        return copy.read()

    return read


@dataclass(frozen=True, slots=True)
class _Copying:
    """The targets of copied parts."""

    spool: Spool
    folders: Mapping[TableName, str]
    progress: _Progress
    ledger: Ledger | None

    def one(self, connection: Connection, piece: Piece, number: int) -> int:
        """Copy a part; returns how many rows it has."""
        progress, folder = self.progress, self.folders[piece.name]
        with connection.cursor() as cursor, cursor.copy(piece.query) as copy:
            read = reader(copy, progress.failed, self.spool.ended)

            def counted() -> Iterator[object]:
                for batch in csv_batches(piece.table, read):
                    progress.add(batch.num_rows)
                    yield batch

            rows = self.spool.fill(folder, number, counted())
        if self.ledger is not None:
            self.ledger.done(number, piece.name, piece.range, folder, rows)
        return rows


@contextmanager
def reading(url: str, snapshot: str) -> Iterator[Connection]:
    """Open a connection in a transaction that has an exported snapshot."""
    with connected(url) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        show(connection, snapshot)
        yield connection


_SIZES = """
SELECT oid::bigint, pg_relation_size(oid) / current_setting('block_size')::int, greatest(reltuples, 0)::bigint
FROM pg_class WHERE oid = ANY(%s)
"""


def _sizes(connection: Connection, oids: Collection[int]) -> tuple[dict[int, int], int]:
    """Return the pages of tables, and about how many rows they have together."""
    found = [tuple(map(int, map(str, row))) for row in connection.execute(_SIZES, (list(oids),)).fetchall()]
    return {oid: pages for oid, pages, _ in found if pages}, sum(rows for _, _, rows in found)
