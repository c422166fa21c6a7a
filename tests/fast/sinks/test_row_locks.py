"""Changes lock rows, not the table: VACUUM goes on beside them, and other writers are noticed all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pytest
from kit.sink_rows import FakeStream, deliver, new_sink, options
from kit.waiting import until

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.sinks.postgres import target_connection
from headrace.sinks.sink_kind import Json, Written

COLUMNS = (Column("region", "string"), Column("total", "decimal(12,2)"))
EU, US, AS = ((region, Decimal(total)) for region, total in (("EU", "80.00"), ("US", "5.00"), ("AS", "2.00")))
EU_NEXT = ("EU", Decimal("9.00"))
CHANGE = [(EU, -1), (EU_NEXT, 1), (US, -1), (AS, 1)]


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else, in a transaction."""
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


def rows(db: psycopg.Connection) -> set[tuple[object, ...]]:
    return set(db.execute("SELECT * FROM out").fetchall())


def loaded(url: str, **said: str) -> tuple[str, FakeStream, Json]:
    sink, stream = new_sink(), FakeStream(COLUMNS, [[(EU, 1), (US, 1)]])
    of = options(url, "out", ["region"], **said)
    deliver(of, stream.delivery(sink))
    return sink, stream, of


@contextmanager
def written_beside(db: psycopg.Connection, write: Callable[[], Written]) -> Iterator[list[Written | HeadraceError]]:
    """Write in a thread, until it waits for somebody; inside, that one ends; then wait for the outcome."""
    outcome: list[Written | HeadraceError] = []

    def run() -> None:
        try:
            outcome.append(write())
        except HeadraceError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    until(lambda: bool(outcome) or db.execute(waiting).fetchone() is not None)
    yield outcome
    thread.join(60)


@pytest.mark.parametrize("on_conflict", ["refuse", "overwrite"])
def test_vacuum_goes_on_beside_changes(
    url: str, db: psycopg.Connection, other: psycopg.Connection, on_conflict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, stream, of = loaded(url, on_conflict=on_conflict)
    monkeypatch.setitem(target_connection.OPTIONS, "lock_timeout", "2s")
    other.execute("LOCK TABLE out IN SHARE UPDATE EXCLUSIVE MODE")  # the lock of VACUUM
    stream.log.append(CHANGE)
    assert deliver(of, stream.delivery(sink)).how == "change"
    assert rows(db) == set(stream.rows_at(1))


def test_vacuum_goes_on_beside_what_comes_to_a_bag(
    url: str, db: psycopg.Connection, other: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, stream, of = new_sink(), FakeStream(COLUMNS, [[(EU, 1)]]), options(url, "out")
    deliver(of, stream.delivery(sink))
    monkeypatch.setitem(target_connection.OPTIONS, "lock_timeout", "2s")
    other.execute("LOCK TABLE out IN SHARE UPDATE EXCLUSIVE MODE")
    stream.log.append([(US, 2)])
    assert deliver(of, stream.delivery(sink)).rows == 3


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize(
    "meddling",
    [
        "UPDATE out SET total = 1 WHERE region = 'EU'",
        "UPDATE out SET region = 'XX' WHERE region = 'EU'",
        "DELETE FROM out WHERE region = 'US'",
        "INSERT INTO out VALUES ('AS', 1)",
        "DELETE FROM out WHERE region = 'EU'; INSERT INTO out VALUES ('EU', 1)",
    ],
)
@pytest.mark.parametrize("commits", [True, False])
def test_changes_that_others_are_about_to_commit_are_noticed(
    url: str, db: psycopg.Connection, other: psycopg.Connection, meddling: str, isolation: str, commits: bool
) -> None:
    name = db.info.dbname
    db.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    sink, stream, of = loaded(url)
    other.execute(meddling)
    stream.log.append(CHANGE)
    with written_beside(db, lambda: deliver(of, stream.delivery(sink))) as outcome:
        assert not outcome
        other.commit() if commits else other.rollback()
        theirs = rows(db)
    if commits:
        assert isinstance(outcome[0], HeadraceError)
        assert outcome[0].code == "SINK_TARGET_CHANGED"
        assert rows(db) == theirs
        assert db.execute("SELECT version FROM headrace.sink_position").fetchall() == [(0,)]
    else:
        assert isinstance(outcome[0], Written)
        assert rows(db) == set(stream.rows_at(1))


@pytest.mark.parametrize(
    "meddling",
    [
        "UPDATE out SET total = 1",
        "DELETE FROM out",
        "INSERT INTO out VALUES ('AS', 1)",
        "DELETE FROM out WHERE region = 'EU'; INSERT INTO out VALUES ('EU', 1)",
    ],
)
def test_what_others_are_about_to_commit_gives_way(
    url: str, db: psycopg.Connection, other: psycopg.Connection, meddling: str
) -> None:
    sink, stream, of = loaded(url, on_conflict="overwrite")
    other.execute(meddling)
    stream.log.append(CHANGE)
    with written_beside(db, lambda: deliver(of, stream.delivery(sink))) as outcome:
        other.commit()
    assert isinstance(outcome[0], Written)
    assert rows(db) == set(stream.rows_at(1))


def test_a_row_that_is_written_again_as_it_was_is_no_change(
    url: str, db: psycopg.Connection, other: psycopg.Connection
) -> None:
    sink, stream, of = loaded(url)
    other.execute("DELETE FROM out WHERE region = 'EU'; INSERT INTO out VALUES ('EU', 80)")
    stream.log.append(CHANGE)
    with written_beside(db, lambda: deliver(of, stream.delivery(sink))) as outcome:
        assert not outcome
        other.commit()
    assert isinstance(outcome[0], Written)
    assert rows(db) == set(stream.rows_at(1))


def test_another_unique_index_is_still_in_the_way(url: str, db: psycopg.Connection) -> None:
    sink, stream, of = loaded(url)
    db.execute("CREATE UNIQUE INDEX ON out (total)")
    stream.log.append([(("AS", US[1]), 1)])
    with pytest.raises(HeadraceError, match="SINK_VALUE_REFUSED"):
        deliver(of, stream.delivery(sink))
    assert rows(db) == {EU, US}
