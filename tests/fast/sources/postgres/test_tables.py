"""Tables that are added, taken anew and withdrawn while others are followed, on a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.waiting import until

from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.sources.postgres.setup import open_capture
from headrace.sources.postgres.snapshot import snapshots
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS = (PostgresCapture, TriggerCapture)


@pytest.fixture
def bank(request: pytest.FixtureRequest, url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Follower]:
    """Accounts in two tables, of which one is captured."""
    for table in ("here", "there"):
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 50) g")
    follower = Follower(url, tmp_path / "spool", "here", way=getattr(request, "param", PostgresCapture))
    follower.begin()
    yield follower
    follower.capture().remove()


def total(follower: Follower) -> int:
    return sum(row[1] * n for t in ("here", "there") for row, n in follower.rows(t).items())


def published(db: psycopg.Connection) -> set[str]:
    return {str(row[0]) for row in db.execute("SELECT tablename FROM pg_publication_tables").fetchall()}


class Transfers:
    """Money that moves between the tables until the block ends."""

    def __init__(self, url: str) -> None:
        self.url, self.done, self.count = url, threading.Event(), 0
        self.thread = threading.Thread(target=self.move)

    def move(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.done.is_set():
                self.count += 1
                with db.transaction():
                    db.execute("UPDATE here SET amount = amount - 1 WHERE id = %s", (self.count % 50 + 1,))
                    db.execute("UPDATE there SET amount = amount + 1 WHERE id = %s", (self.count * 7 % 50 + 1,))

    def __enter__(self) -> Transfers:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


@pytest.mark.parametrize("bank", WAYS, indirect=True)
def test_a_table_is_added_at_one_cut_with_those_that_are_followed(
    bank: Follower, url: str, db: psycopg.Connection
) -> None:
    with Transfers(url) as transfers:
        until(lambda: transfers.count)
        bank.land()
        before = transfers.count
        bank.renew("there")
        assert total(bank) == 10_000
        bank.land()
        assert total(bank) == 10_000
        assert transfers.count > before > 0
    bank.land()
    for table in ("here", "there"):
        assert bank.rows(table) == truth(db, table)


@pytest.mark.parametrize("bank", WAYS, indirect=True)
def test_one_table_is_taken_anew_at_one_cut_with_the_others(bank: Follower, url: str, db: psycopg.Connection) -> None:
    bank.renew("there")
    with Transfers(url):
        for table in ("here", "there"):
            landing = bank.renew(table)
            assert [t.name.table for t in landing.tables if t.replaced] == [table]
            assert total(bank) == 10_000
    bank.land()
    for table in ("here", "there"):
        assert bank.rows(table) == truth(db, table)


def test_what_cannot_be_added_leaves_the_others_as_they_were(bank: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE VIEW seen AS SELECT 1 AS a; CREATE TABLE keyless (a int)")
    names = dict(bank.names)
    for table, finding in (("missing", "does not exist"), ("seen", "a view"), ("keyless", "primary key")):
        with pytest.raises(UserError, match=finding):
            bank.renew(table)
        bank.names = dict(names)
    assert published(db) == {"here"}
    db.execute("UPDATE here SET amount = 0; UPDATE keyless SET a = 1")
    bank.land()
    assert bank.rows("here") == truth(db, "here")


def test_a_snapshot_that_fails_stops_nothing(
    bank: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = dict(bank.names)

    def full(*_: object) -> object:
        raise EnvironmentFault("SPOOL_NOT_WRITABLE", "The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "csv_batches", full)
        for table in ("here", "there"):
            with pytest.raises(EnvironmentFault, match="SPOOL_NOT_WRITABLE"):
                bank.renew(table)
    bank.names = names
    assert published(db) == {"here", "there"}  # until the next landing
    db.execute("UPDATE here SET amount = 7; UPDATE there SET amount = 7")
    assert not any(t.replaced for landing in bank.land() for t in landing.tables)
    assert bank.rows("here") == truth(db, "here")
    assert published(db) == {"here"}


def test_tables_are_taken_anew_by_their_identity(bank: Follower, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE here RENAME TO vault; CREATE TABLE here (other int PRIMARY KEY)")
    db.execute("UPDATE vault SET amount = 1")
    bank.renew("here")
    assert bank.rows("here") == truth(db, "vault")
    db.execute("SELECT pg_drop_replication_slot(%s)", (bank.slot,))
    db.execute("UPDATE vault SET amount = 2")
    bank.begin()
    assert bank.rows("here") == truth(db, "vault")


def test_a_table_that_came_back_is_taken_anew(bank: Follower, db: psycopg.Connection) -> None:
    bank.renew("there")
    db.execute("DROP TABLE there")
    bank.land()
    assert {n.table for n in bank.gone} == {"there"}
    with pytest.raises(UserError, match="does not exist"):
        bank.renew("there")
    bank.begin()  # leaves out what is gone
    db.execute("CREATE TABLE there (id int PRIMARY KEY, amount bigint); INSERT INTO there VALUES (1, 5)")
    bank.renew("there")
    assert (bank.rows("there"), bank.gone) == (truth(db, "there"), set())


def test_one_table_has_one_mirror_of_a_source(bank: Follower, db: psycopg.Connection) -> None:
    other = bank.capture()
    name = next(iter(bank.names))
    twice = {name: ("public", "here"), type(name)(name.catalog, name.namespace, "again"): ("public", "here")}
    bank.names = twice
    with pytest.raises(UserError, match="DUPLICATE_TABLE"):
        bank.renew("again")
    with pytest.raises(UserError, match="DUPLICATE_TABLE"):
        bank.capture().begin()
    other.tidy()


def test_no_slot_is_left_for_a_snapshot(bank: Follower, db: psycopg.Connection) -> None:
    free = "SELECT current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots"
    slots = [f"filler_{n}" for n in range(int(str(db.execute(free).fetchall()[0][0])))]
    for slot in slots:
        db.execute("SELECT pg_create_physical_replication_slot(%s)", (slot,))
    try:
        with pytest.raises(UserError, match="0 replication slots are free"):
            bank.renew("here")
        db.execute("UPDATE here SET amount = 3")
        bank.land()
        assert bank.rows("here") == truth(db, "here")
    finally:
        for slot in slots:
            db.execute("SELECT pg_drop_replication_slot(%s)", (slot,))


# ---- names


OPTIONS = {
    "url": "",
    "slot": "s",
    "tables": {"here": ["public", "here"], "far": ["other", "here"]},
    "as_text": [],
    "parts": {},
}


@pytest.mark.parametrize(
    ("text", "mirrors"),
    [("here", ("here",)), ("bank.far", ("far",)), ("public.here", ("here",)), ('other."here"', ("far",))],
)
def test_tables_are_named_as_they_were_added_or_by_their_mirrors(text: str, mirrors: tuple[str, ...]) -> None:
    assert open_capture.mirrors_of("bank", OPTIONS, [text, text]) == mirrors


def test_tables_that_are_not_there() -> None:
    with pytest.raises(HeadraceError, match="SOURCE_TABLE_UNKNOWN"):
        open_capture.mirrors_of("bank", OPTIONS, ["public.far"])


def test_options_with_and_without_tables() -> None:
    more = open_capture.with_tables(OPTIONS, {"new": ("public", "new")}, ["public.new.until"])
    assert (sorted(more["tables"]), more["as_text"]) == (["far", "here", "new"], ["public.new.until"])
    assert open_capture.without_tables(more, ["new"]) == OPTIONS
    for tables, as_text, code in (
        ({"here": ("public", "x")}, [], "TABLE_EXISTS"),
        ({"x": ("public", "here")}, [], "DUPLICATE_TABLE"),
        ({"_headrace_x": ("public", "x")}, [], "INVALID_NAME"),
        ({"x": ("public", "x")}, ["public.here.c"], "COLUMN_NOT_FOUND"),
    ):
        with pytest.raises(HeadraceError, match=code):
            open_capture.with_tables(OPTIONS, tables, as_text)
