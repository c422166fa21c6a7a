"""Servers that go back to an earlier state, or become others, are noticed, and refused until the user decides.

However much was written since: positions in the log and ids of transactions are beyond what is landed again then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.errors import UserError
from headrace.sources.postgres.triggers import auto_capture
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS: dict[str, Way] = {"wal": PostgresCapture, "trigger": TriggerCapture, "auto": AutoCapture}
BUSY = "INSERT INTO other SELECT g, repeat('x', 200) FROM generate_series(1, {}) g"


@pytest.fixture
def own() -> Iterator[LogicalServer]:
    """A server that nobody else uses."""
    with logical_server() as server:
        yield server


@dataclass
class Source:
    """A database that is followed in all ways."""

    url: str
    followers: dict[str, Follower]

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)

    def same(self, name: str) -> bool:
        with psycopg.connect(self.url, autocommit=True) as db:
            return self.followers[name].rows("t") == truth(db, "t")

    def refused(self, name: str, why: str) -> None:
        follower = self.followers[name]
        before = follower.rows("t")
        for attempt in (follower.land, lambda: follower.renew("t")):
            with pytest.raises(UserError, match=why) as caught:
                attempt()
            assert caught.value.code == "SOURCE_CHANGED"
            assert "resnapshot" in (caught.value.hint or "")
        assert follower.rows("t") == before

    def decided(self, name: str) -> None:
        """The user takes a new snapshot, and all goes on."""
        follower = self.followers[name]
        follower.begin()
        self.run("INSERT INTO t SELECT max(id) + 1 FROM t")
        follower.land()
        assert self.same(name)
        follower.capture().remove()


def source(server: LogicalServer, folder: Path, *names: str) -> Source:
    made = Source(server.fresh(), {})
    made.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE TABLE other (id int, filler text)")
    for name in names:
        way = WAYS[name.partition("_")[0]]
        made.followers[name] = Follower(made.url, folder / name, "t", slot=f"headrace_{name}", way=way)
        made.followers[name].begin()
        made.run("INSERT INTO t SELECT max(id) + 1 FROM t")
        made.followers[name].land()
    return made


@pytest.mark.parametrize("written", [0, pytest.param(50_000, marks=pytest.mark.long)])
def test_a_cold_copy_that_was_put_back(own: LogicalServer, tmp_path: Path, written: int) -> None:
    """Also where more was written there than had been lost; but not where nothing was landed since the copy."""
    of = source(own, tmp_path, *WAYS, "wal_still", "trigger_still", "auto_still")
    copy = own.put_aside()
    of.run("DELETE FROM t WHERE id < 3", *["INSERT INTO t SELECT max(id) + 1 FROM t"] * 20, BUSY.format(1_000))
    for name in WAYS:
        of.followers[name].land()
        assert of.same(name)
    of.run("DELETE FROM t WHERE id = 5")
    own.put_back(copy)
    if written:
        of.run(*["INSERT INTO t SELECT 100 + max(id) FROM t"] * 60, BUSY.format(written))
    for name in WAYS:
        of.refused(name, "went back to an earlier state")
        of.decided(name)
    for name in ("wal_still", "trigger_still", "auto_still"):
        of.followers[name].land()
        assert of.same(name)
        of.followers[name].capture().remove()


def test_a_copy_from_before_what_was_landed_without_a_change_of_tables(own: LogicalServer, tmp_path: Path) -> None:
    """What is captured there at places that are landed here, where nothing was captured, is missed otherwise."""
    of = source(own, tmp_path, "wal")
    follower = of.followers["wal"]
    copy = own.put_aside()
    before = follower.position["lsn"]
    of.run(BUSY.format(100_000))
    follower.land()
    assert follower.position["lsn"] > before
    own.put_back(copy)
    of.run("INSERT INTO t VALUES (77)", BUSY.format(150_000))
    of.refused("wal", "went back to an earlier state")
    of.decided("wal")


def test_a_crash_is_none_of_it(own: LogicalServer, tmp_path: Path) -> None:
    """What a crash takes back of slots and of change tables was landed, and is left out."""
    of = source(own, tmp_path, *WAYS)
    of.run("CHECKPOINT")
    for turn in range(3):
        of.run(
            "INSERT INTO t SELECT max(id) + 1 FROM t",
            f"UPDATE t SET id = id + 1000 * {turn + 1} WHERE id % 3 = 0",
            BUSY.format(10),
        )
        for follower in of.followers.values():
            follower.land()
        if turn != 1:
            own.restart("immediate")
    for name, follower in of.followers.items():
        follower.land()
        assert of.same(name)
        follower.capture().remove()


@pytest.mark.parametrize("name", ["trigger", "auto"])
def test_a_project_that_was_put_back_is_told_from_the_server(
    server: LogicalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Or two copies of one project: what one of them has landed is not there for the other."""
    monkeypatch.setattr(auto_capture.AutoCapture, "_can_use_log", lambda *_: False)
    of = source(server, tmp_path, name)
    follower, former = of.followers[name], of.followers[name].position
    for _ in range(2):
        of.run("INSERT INTO t SELECT max(id) + 1 FROM t")
        follower.land()
    follower.position = former
    of.refused(name, "or this project did")
    of.decided(name)


def test_a_dump_that_is_restored_keeps_its_triggers_and_has_the_tables_taken_anew(
    server: LogicalServer, tmp_path: Path
) -> None:
    """Identities are others then; what was captured before and after is not asked for."""
    of = source(server, tmp_path, "trigger")
    follower = of.followers["trigger"]
    of.run("INSERT INTO t VALUES (100)")
    server.restore(of.url, tmp_path)
    of.run("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (101)")
    assert [t.name.table for landing in follower.land() for t in landing.tables if t.replaced] == ["t"]
    assert of.same("trigger")
    of.run("INSERT INTO t VALUES (102)")
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    assert of.same("trigger")
    follower.capture().remove()


def test_what_tells_of_landings_cannot_be_removed_unnoticed(server: LogicalServer, tmp_path: Path) -> None:
    of = source(server, tmp_path, "trigger")
    for statement in ("TRUNCATE", "DROP TABLE"):
        of.run(f"{statement} headrace_trigger.landings")
        with pytest.raises(UserError, match="CAPTURE_REMOVED"):
            of.followers["trigger"].land()
        of.followers["trigger"].begin()
    of.decided("trigger")


def test_an_upgraded_server_is_another_one(own: LogicalServer, tmp_path: Path) -> None:
    of = source(own, tmp_path, *WAYS)
    of.run("INSERT INTO t SELECT max(id) + 1 FROM t")
    for follower in of.followers.values():
        follower.land()
    of.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")  # pg_upgrade insists
    own.upgrade()
    of.run("INSERT INTO t VALUES (1000)")
    for name in WAYS:
        of.refused(name, "another cluster")
        of.decided(name)
