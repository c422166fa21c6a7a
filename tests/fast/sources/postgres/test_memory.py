"""A landing takes no more memory for a larger transaction, nor for larger rows: what it has is written as it grows.

In `make test-long` it is a transaction of five million rows, in a gigabyte for everything that the process has.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from fast.sources.postgres import messages as m
from kit import pg_child
from kit.long_tests import LONG
from kit.mirrored import Follower

from headrace.sources.capture import Landing
from headrace.sources.postgres.spool.text_columns import CHUNK_BYTES, keyed, weighed
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.net_collector import MOST, VALUE, Collector
from headrace.sources.postgres.wal.pgoutput import UNCHANGED
from headrace.sources.postgres.wal.slots import BLOCK
from headrace.sources.postgres.wal.wal_capture import Captured, PostgresCapture

MIB, GIB = 1 << 20, 1 << 30
FIELDS = 9
COLUMNS = ", ".join(f"c{i} text" for i in range(FIELDS))
VALUES = ", ".join(f"'value {i} ' || lpad(g::text, 8, '0')" for i in range(FIELDS))
TABLE = f"CREATE TABLE t (id bigint PRIMARY KEY, {COLUMNS}, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL"


class Landings:
    """A table that is followed, a landing at a time, by processes of their own."""

    def __init__(self, url: str, folder: Path, way: type[PostgresCapture]) -> None:
        self._follower, self._way = Follower(url, folder, "t", way=way), way
        self._published(self._follower.capture().begin())

    def __call__(self, most: int = MOST) -> pg_child.Measured:
        of, capture = self._follower, self._follower.capture()
        captured = Captured(of.url, of.slot, of.names, known=of.mirrors.tables)
        measured = pg_child.land(self._way, captured, of.folder, of.position, most=most)
        assert measured is not None, "the landing failed"
        self._published(measured.landing)
        capture.acknowledge(of.position)
        return measured

    def end(self) -> None:
        self._follower.capture().remove()

    def _published(self, landing: Landing) -> None:
        self._follower.mirrors.tables.update({t.name: t.table for t in landing.tables})
        self._follower.position = landing.position


def written(measured: pg_child.Measured) -> int:
    return sum(t.spooled.rows for t in measured.landing.tables)


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_a_transaction_of_six_times_the_size_needs_no_more(
    url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture]
) -> None:
    db.execute(TABLE)
    landings, least = Landings(url, tmp_path, way), 0
    grown = []
    for rows in (20_000, 120_000):
        db.execute(f"INSERT INTO t SELECT {least} + g, {VALUES} FROM generate_series(1, {rows}) g")
        measured, least = landings(most=10_000), least + rows
        assert (written(measured), measured.landing.transactions) == (rows, 1)
        grown.append(measured.grown)
    assert grown[1] - grown[0] < 40 * MIB, grown
    landings.end()


def test_large_rows_are_written_a_few_at_a_time() -> None:
    row = m.row(["1", "x" * 40_000, None])
    bag, by_key = WeighedChanges(added=[row] * 2_000), KeyedChanges((0,))
    by_key.many((True, (b"%d" % number,), row) for number in range(2_000))
    for batches in (weighed(m.table(), bag), keyed(m.table(), by_key)):
        sizes = [(batch.num_rows, batch.nbytes) for batch in batches]
        assert sum(rows for rows, _ in sizes) == 2_000
        assert 5 < len(sizes) < 20
        assert max(bytes_ for _, bytes_ in sizes) < 1.5 * CHUNK_BYTES


def test_values_taken_out_of_their_rows_count_as_what_they_take() -> None:
    table, held = m.table(), list[int]()
    most = BLOCK * 2 * VALUE  # less than three values a row, and much more than what is sent of them
    collector = Collector({table.oid: table}, 0, spill=lambda changes: held.append(len(changes[1])), most_bytes=most)
    updates = [m.update(table.oid, [str(g), "x", UNCHANGED]) for g in range(4 * BLOCK)]
    collector.feed(m.blocks([m.begin(1), m.relation(table), *updates, m.commit(1, 2)], BLOCK))
    assert len(held) >= 4


CASES = {
    "inserted": ("", f"INSERT INTO t SELECT g, {VALUES} FROM generate_series(1, {{}}) g"),
    "updated, large values unsent": (
        f"INSERT INTO t SELECT g, {VALUES}, repeat('x', 2100) FROM generate_series(1, {{}} / 20) g",
        "DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE t SET c1 = c1 || 'x'; END LOOP; END $$",
    ),
    "old rows sent whole": (
        f"ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t SELECT g, {VALUES} FROM generate_series(1, {{}} / 5) g",
        "DO $$ BEGIN FOR i IN 1..5 LOOP UPDATE t SET c1 = c1 || 'x'; END LOOP; END $$",
    ),
    "large": ("", "INSERT INTO t (id, body) SELECT g, repeat('x', 10000) FROM generate_series(1, {} / 25) g"),
}
ROWS = 5_000_000

if LONG:

    @pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
    @pytest.mark.parametrize("case", CASES)
    def test_five_million_rows_in_a_gigabyte(
        url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture], case: str
    ) -> None:
        before, transaction = CASES[case]
        db.execute(TABLE)
        if before:
            db.execute(before.format(ROWS))
        landings = Landings(url, tmp_path, way)
        db.execute(transaction.format(ROWS))
        measured = landings()
        assert measured.landing.transactions == 1
        assert measured.peak < GIB, measured.peak
        landings.end()
