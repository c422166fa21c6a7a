"""Slots that run out: what is expected of them, when it is warned of, and what is told when they are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from kit.house import House
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth

from headrace.catalog import SourceStatus
from headrace.cli.progress import news
from headrace.errors import UserError
from headrace.events import SlotRunningOut
from headrace.landing import source_watch
from headrace.sources.postgres.citus import cluster_health
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.health import slot_outlook
from headrace.sources.postgres.health.server_health import health
from headrace.sources.postgres.health.slot_outlook import Look, as_json, from_json, outlook, remembered
from headrace.sources.postgres.postgres_kind import POSTGRES
from headrace.sources.postgres.server import Server
from headrace.sources.postgres.setup.preflight import check_server
from headrace.sources.postgres.wal.slots import Slot, SlotUse

MIB = 1 << 20
FIRST = Look(at=1000.0, system="1", log=100 * MIB, left=50 * MIB, kept=10 * MIB, idle=None, patience=None)


def later(seconds: float, written: int, landed: int = 0, **changes: object) -> Look:
    """A look after some log was written, of which some was landed."""
    left, kept = 50 * MIB - written + landed, 10 * MIB + written - landed
    now = replace(FIRST, at=FIRST.at + seconds, log=FIRST.log + written, left=left, kept=kept)
    return replace(now, **changes)  # type: ignore[arg-type]


def test_without_an_earlier_look_nothing_is_guessed() -> None:
    for looks in ((), (FIRST,), (replace(FIRST, system="2"),), (replace(FIRST, log=FIRST.log + 9 * MIB),)):
        found = outlook(looks, later(1, MIB) if looks == (FIRST,) else later(60, MIB))
        assert (found.rate, found.room_ends, found.why) == (None, None, None)


def test_the_rate_says_when_the_room_ends() -> None:
    found = outlook((FIRST,), later(10, 10 * MIB))
    assert (found.rate, found.room_ends, found.seconds) == (MIB, 40.0, 40.0)
    assert found.why is not None
    assert outlook((FIRST,), later(10, 10 * MIB, left=None)).room_ends is None
    assert outlook((FIRST,), later(10, 0)).room_ends is None, "at this rate it never ends"


def test_a_slot_that_follows_is_not_warned_of_however_busy_the_server() -> None:
    followed = outlook((FIRST,), later(10, 10 * MIB, landed=10 * MIB))
    assert (followed.room_ends, followed.why) == (50.0, None)
    assert outlook((FIRST,), later(100_000, 10 * MIB)).why is None, "there is time"
    assert outlook((), later(10, 0, left=MIB, kept=100 * MIB)).why is not None, "of its room little is left"


def test_idleness_ends_a_slot_too() -> None:
    found = outlook((), later(1, 0, idle=100.0, patience=86_400.0))
    assert (found.idle_ends, found.seconds, found.why) == (86_300.0, 86_300.0, None)
    assert outlook((), later(1, 0, idle=86_000.0, patience=86_400.0)).why is not None
    assert outlook((), later(1, 0, idle=None, patience=86_400.0)).seconds is None, "somebody reads it"


def test_a_slot_without_a_limit_is_warned_of_when_it_keeps_much_and_ever_more() -> None:
    much = slot_outlook.MUCH + MIB
    before = replace(FIRST, left=None, kept=much)
    found = outlook((before,), later(10, MIB, left=None, kept=much + MIB))
    assert found.seconds is None
    assert found.why == (
        "the server keeps 8 GiB of log for its replication slot, and ever more until its disk is full:"
        " max_slot_wal_keep_size is not limited"
    )
    told = news(SlotRunningOut("shop", "slot", None, None, found.why))
    assert told == f"shop: {found.why}"
    assert outlook((before,), later(10, MIB, left=None, kept=much)).why is None, "it is read as fast as it grows"
    assert outlook((before,), later(10, 0, left=None, kept=much)).why is not None, "only the writers pause"
    assert outlook((), later(10, MIB, left=None, kept=much)).why is None, "nothing is known of before"
    assert outlook((replace(before, kept=MIB),), later(10, MIB, left=None, kept=9 * MIB)).why is None


def test_two_looks_are_remembered_some_minutes_apart() -> None:
    looks: tuple[Look, ...] = ()
    for minute in range(30):
        looks = remembered(looks, later(minute * 60, minute))
        assert from_json(as_json(looks)) == looks
    span = looks[-1].at - looks[0].at
    assert (len(looks), span) == (2, slot_outlook.SPAN)
    assert remembered(looks, replace(FIRST, system="2")) == (replace(FIRST, system="2"),), "another server"


GIB = 1 << 30


def test_every_node_of_a_cluster_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator, which writes next to nothing, comes first, and no node has a limit, PostgreSQL's default."""
    kept, safe, clock = {0: GIB // 64, 1: 90 * GIB, 2: 5 * GIB}, dict[int, int](), [1000.0]

    @contextmanager
    def nodes(_: str) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(connections={g: g for g in kept}, nodes={0: "c:1", 1: "w:1", 2: "w:2"})

    def now(node: int) -> Server:
        return Server(180000, f"system {node}", 1, 10**12 + int(clock[0]) * 10 * MIB, "logical", clock[0])

    monkeypatch.setattr(cluster_health, "cluster", nodes)
    monkeypatch.setattr(cluster_health, "server", now)
    monkeypatch.setattr(cluster_health, "slot_use", lambda *_: SlotUse(None, None, 0, None))
    monkeypatch.setattr(cluster_health, "find_slot", lambda g, _: Slot(1, "extended", None, kept[g], safe.get(g)))
    options, position = {"url": "", "slot": "s"}, {"cut": 1, "nodes": {}}
    source = SimpleNamespace(options=options, position=position, looks=tuple(as_json((FIRST,))))

    def looked() -> str | None:
        look = POSTGRES.look(source, landed=False)  # type: ignore[arg-type]
        assert look is not None
        assert list(look["nodes"]) == ["coordinator", "w:1", "w:2"]
        found = POSTGRES.outlook(source, look)  # type: ignore[arg-type]
        source.looks = found.remembered
        clock[0] += 400
        return None if found.loss is None else f"{found.loss.what}: {found.loss.reason}"

    for worker in (1, 2):
        source.looks = tuple(as_json((FIRST,)))
        kept.update({1: 5 * GIB, 2: 5 * GIB, worker: 90 * GIB})
        assert looked() is None
        kept[worker] += 10 * GIB
        told = looked() or ""
        assert told.startswith(f"s of node w:{worker}: node w:{worker}: the server keeps 100 GiB of log")
        assert cluster_health_of(options, position) == f"w:{worker}"
    kept.update(dict.fromkeys(kept, MIB))
    safe.update({0: 90 * GIB, 1: 50 * GIB, 2: 51 * GIB})
    assert looked() is None
    for step in range(8):  # two take turns to be the nearest
        safe[1 + step % 2] -= 8 * GIB
        kept[1 + step % 2] += 8 * GIB
        told = looked() or ""
    assert told.startswith("s of node w:")
    [*_, last] = source.looks
    assert set(last["nodes"]) == {"coordinator", "w:1", "w:2"}


def cluster_health_of(options: Mapping[str, Any], position: Mapping[str, Any]) -> str | None:
    """Which node a cluster's status is about."""
    return health(options, position).node


# ---- on a real server

TELLS_WHY, IDLE_TIMEOUT = 170000, 180000
"""Versions from which a server tells why it invalidated a slot, and can be told how long one may idle."""


@pytest.fixture
def house(server: LogicalServer, tmp_path: Path) -> House:
    return House(server, tmp_path)


@pytest.fixture
def db(house: House) -> Iterator[psycopg.Connection]:
    with psycopg.connect(house.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def orders(house: House, db: psycopg.Connection, tmp_path: Path) -> Iterator[Follower]:
    follower = Follower(house.url, tmp_path / "spool", "orders")
    follower.begin()
    house.follow("shop", follower)
    yield follower
    follower.capture().remove()


@contextmanager
def setting(server: LogicalServer, name: str, value: str) -> Iterator[None]:
    with server.connect("postgres") as admin:
        admin.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            admin.execute(f"ALTER SYSTEM RESET {name}")
            admin.execute("SELECT pg_reload_conf()")


def written(db: psycopg.Connection, segments: int) -> None:
    """So many files of log, of next to nothing."""
    for _ in range(segments):
        db.execute("SELECT pg_logical_emit_message(true, 'test', '')")
        db.execute("SELECT pg_switch_wal()")


def test_a_slot_that_runs_out_is_warned_of_once_and_then_told_lost(
    house: House, orders: Follower, db: psycopg.Connection, server: LogicalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "EVERY", 0.0)
    house.catalog.pause_source("shop")
    sources = house.sources()
    with setting(server, "max_slot_wal_keep_size", "160MB"):
        assert sources.land_for(None) is None
        found = sources.status("shop")
        assert found.safe_bytes is not None
        assert not warned(house)
        monkeypatch.setattr(slot_outlook, "APART", 0.0)  # not before: a server writes a little of its own accord
        written(db, 2)
        for _ in range(2):
            sources.land_for(None)
        (event,) = warned(house)
        assert (event.source, event.slot) == ("shop", orders.slot)
        assert event.left is not None
        assert event.seconds is not None
        assert event.left < found.safe_bytes
        assert "shop" in (news(event) or "")
        assert "left" in (news(event) or "")
        house.catalog.resume_source("shop")
        sources.land("shop")
        assert len(warned(house)) == 1
        ahead = sources.status("shop")
        assert ahead.runs_out_seconds is not None
        assert ahead.log_bytes_per_second
        house.catalog.pause_source("shop")
        db.execute("INSERT INTO orders VALUES (2)")
        written(db, 12)
        db.execute("CHECKPOINT")
        house.catalog.resume_source("shop")
        with pytest.raises(UserError, match="SLOT_LOST") as caught:
            sources.land("shop")
        assert "max_slot_wal_keep_size" in caught.value.message
        assert "Raise max_slot_wal_keep_size" in (caught.value.hint or "")
        gone = sources.status("shop")
        assert (gone.slot_status, gone.runs_out_seconds) == ("lost", None)
        assert gone.slot_invalidation == ("wal_removed" if db.info.server_version >= TELLS_WHY else None)
    orders.begin()
    assert orders.rows("orders") == truth(db, "orders")


def warned(house: House) -> list[SlotRunningOut]:
    return [e for e in house.told if isinstance(e, SlotRunningOut)]


def test_a_source_that_is_landed_does_not_idle_and_one_that_is_not_is_told(
    house: House, orders: Follower, db: psycopg.Connection, server: LogicalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "EVERY", 0.0)
    if db.info.server_version < IDLE_TIMEOUT:
        pytest.skip("idle_replication_slot_timeout needs PostgreSQL 18")
    sources, read = house.sources(), "SELECT inactive_since FROM pg_replication_slots WHERE slot_name = %s"
    with setting(server, "idle_replication_slot_timeout", "1s"):
        with connected(house.url) as connection:
            assert any("idle_replication_slot_timeout is 1s" in c.finding for c in check_server(connection))
        db.execute("SELECT pg_sleep(0.3)")  # more than a quarter of its patience
        before = db.execute(read, (orders.slot,)).fetchall()
        sources.land("shop")
        assert db.execute(read, (orders.slot,)).fetchall() > before, "nothing was there to be read, and it was read"
        found = sources.status("shop")
        assert found.idle_timeout_seconds == 1
        assert found.idle_seconds is not None
        house.catalog.pause_source("shop")
        db.execute("SELECT pg_sleep(1 - extract(epoch FROM clock_timestamp() - inactive_since) - 0.1) "
                   "FROM pg_replication_slots WHERE slot_name = %s", (orders.slot,))  # fmt: skip
        sources.land_for(None)
        assert ["idle_replication_slot_timeout" in e.reason for e in warned(house)] == [True]
        db.execute("INSERT INTO orders VALUES (2); SELECT pg_sleep(0.15)")
        db.execute("CHECKPOINT")
        house.catalog.resume_source("shop")
        with pytest.raises(UserError, match="SLOT_LOST") as caught:
            sources.land("shop")
        assert "Raise idle_replication_slot_timeout" in (caught.value.hint or "")
        assert sources.status("shop").slot_invalidation == "idle_timeout"
    orders.begin()
    assert orders.rows("orders") == truth(db, "orders")


def test_a_source_whose_first_snapshot_was_interrupted_is_watched(
    house: House, orders: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "EVERY", 0.0)
    monkeypatch.setattr(slot_outlook, "APART", 0.0)
    monkeypatch.setattr(slot_outlook, "MUCH", 0)
    with house.catalog._database.write() as connection:
        connection.exec_driver_sql("UPDATE hr_source SET status = 'NEW', position_json = NULL")
    sources = house.sources()

    def look() -> None:
        for source in sources.due():
            sources.land_due(source.name, threading.Event(), nullcontext)

    look()
    written(db, 2)
    look()
    (event,) = warned(house)
    assert (event.source, event.left, event.seconds) == ("shop", None, None)
    assert house.catalog.source("shop").status is SourceStatus.NEW
