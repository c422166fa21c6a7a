"""Accounts in two tables of a database, clients that move money between them all the time, and whoever looks on."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import psycopg
from catalog_kit.forking import forking, preload
from pyiceberg.table import StaticTable

from headrace.api.facade import Headrace
from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.refresh.cut.pinned_state import PinnedState

TABLES = ("here", "there")
ACCOUNTS, TOTAL = 40, 8_000


def create(db: psycopg.Connection) -> None:
    """Make the tables; from then on they hold TOTAL together, at every moment."""
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")


class Transfers:
    """Threads that move money, in transactions that overlap.

    Args:
        url: The database.
        pause: Seconds that each client waits between two transactions.
    """

    def __init__(self, url: str, pause: float = 0.02) -> None:
        self.url, self.pause, self.count, self.leave = url, pause, 0, threading.Event()

    def move(self, seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.wait(self.pause):
                tables, amount = chance.sample(TABLES, 2), chance.randint(1, 90)
                with db.transaction():  # always in one order: the two of them never wait for each other in a circle
                    for table, change in sorted(zip(tables, (-amount, amount), strict=True)):
                        key = chance.randint(1, ACCOUNTS)
                        db.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (change, key))
                self.count += 1

    @contextmanager
    def going_on(self) -> Iterator[None]:
        with side_by_side(self.leave, [partial(self.move, seed) for seed in (1, 2)]):
            yield


@contextmanager
def side_by_side(leave: threading.Event, doing: Sequence[Callable[[], None]]) -> Iterator[None]:
    """Threads that do something until the end of the block, of which the event tells them."""
    threads = [threading.Thread(target=one) for one in doing]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        leave.set()
        for thread in threads:
            thread.join()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader has seen.

    Args:
        looks: How often it looked at what was published last.
        back: And at one of the publications before.
        states: How many different states those were.
        torn: What it saw that no moment of the database has.
    """

    looks: int
    back: int
    states: int
    torn: tuple[object, ...]


Sum = tuple[Sequence[TableName], str]
"""Tables of `lake`, and the column of theirs that adds up to TOTAL."""

LOOK_BACK = 4
"""So many publications, at the most; each third look."""

preload(__name__)


@dataclass(slots=True)
class Watching:
    """A reader that looks on.

    Args:
        back: How often it looked at one of the publications before; shared with it.
        seen: What it has seen, once the block is over.
    """

    back: Any
    seen: list[Seen] = field(default_factory=list)


@contextmanager
def watched(catalog_url: str, sums: Sequence[Sum], whole: int = TOTAL) -> Iterator[Watching]:
    """A reader in a process of its own, without Spark, which reads files as PyIceberg finds them.

    Args:
        catalog_url: The project's catalog.
        sums: What adds up to the whole in every published state.
        whole: All the money there is.

    Yields:
        The reader.
    """
    ours, theirs = forking().Pipe()
    watching = Watching(forking().Value("i", 0))
    child = forking().Process(target=_watch, args=(theirs, catalog_url, sums, whole, watching.back), daemon=True)
    child.start()
    theirs.close()
    try:
        yield watching
        ours.send(None)
        watching.seen.append(ours.recv())
    finally:
        child.kill()
        child.join()


def _watch(told: Connection, catalog_url: str, sums: Sequence[Sum], whole: int, back: Any) -> None:
    looks = 0
    states, torn = set[int](), list[object]()
    with Catalog.open(catalog_url) as catalog:
        while not told.poll():
            looks += 1
            when = None
            if looks % 3 == 0:
                when = catalog.publications(LOOK_BACK)[-1].id
            try:
                found = [_sum(catalog, PinnedState(catalog, when), *of) for of in sums]
            except UserError as error:  # a table that was not there yet, as of then
                if when is None or error.code != "HISTORY_EXPIRED":
                    raise
                continue
            states |= {snapshot for _, snapshots in found for snapshot in snapshots}
            if any(total != whole for total, _ in found):
                torn.append((when, found))
            back.value += when is not None
    told.send(Seen(looks, back.value, len(states), tuple(torn)))


def _sum(catalog: Catalog, state: PinnedState, tables: Sequence[TableName], column: str) -> tuple[int, list[int]]:
    """The sum over tables as of a state, and their snapshots."""
    total, snapshots = 0, []
    for name in tables:
        snapshot = re.search(r"VERSION AS OF (\d+)", state.expression(name))
        if snapshot is not None:
            table = StaticTable.from_metadata(catalog.pointers(LAKE, [name])[name].metadata_location)
            scan = table.scan(selected_fields=(column,), snapshot_id=int(snapshot[1]))
            total += sum(scan.to_arrow()[column].to_pylist())
            snapshots.append(int(snapshot[1]))
    return total, snapshots


def same(hr: Headrace, source: str, db: psycopg.Connection) -> bool:
    """Whether the mirrors are the tables."""
    return all(
        Counter(tuple(r) for r in hr.sql(f"SELECT id, amount FROM lake.{source}.{table}").collect())
        == Counter(db.execute(f"SELECT id, amount FROM {table}").fetchall())
        for table in TABLES
    )
