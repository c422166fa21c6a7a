"""A replica is promoted: with a failover slot capture goes on there, where nothing is missed; else the user decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server
from kit.mirrored import Follower, truth
from kit.one_statement import parse_statement
from kit.sharded import ShardFollower
from kit.standby import Standby, standby

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.health.server_health import check, health
from headrace.sources.postgres.setup.open_capture import options_of
from headrace.sources.postgres.setup.preflight import check_server
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.server_promotion import FAILOVER_SLOTS, left_at
from headrace.sources.postgres.wal.wal_capture import PostgresCapture
from headrace.statements.parsed_statements import CreateSource


@dataclass
class Promoted:
    """Followers of a server whose replica was promoted.

    Args:
        followers: The followers.
        db: The replica's database.
        as_shard: What was told when it was to be a shard of a source before, beside another database.
        beside: That one.
    """

    followers: dict[str, Follower]
    db: psycopg.Connection
    as_shard: EnvironmentFault
    beside: str

    def of(self, name: str) -> Follower:
        """One of them; those whose slot can fail over are there where PostgreSQL has such slots."""
        if name not in self.followers:
            pytest.skip("slots that fail over need PostgreSQL 17")
        return self.followers[name]


def in_step(primary: psycopg.Connection, replica: Standby, *followers: Follower) -> None:
    """Have the replica's copies of slots reach those of the primary."""
    synced = "SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary"
    with replica.connect("postgres") as db:
        while db.execute(synced).fetchone() != (len(followers),):
            primary.execute("UPDATE t SET id = id")  # slots move when there is something to land
            # a copy is kept once the slot needs no transaction older than any that the replica may see to run: what
            # tells the slot so comes after all of them, and by itself four times a minute only
            primary.execute("SELECT pg_log_standby_snapshot(), pg_logical_emit_message(false, 't', '', true)")
            for follower in followers:
                follower.land()
            replica.catch_up()
            db.execute("SELECT pg_sync_replication_slots()")


@pytest.fixture(scope="module")
def server() -> Iterator[LogicalServer]:
    """A server of its own: a replica begins with a copy of all that is there."""
    with logical_server() as started:
        yield started


@pytest.fixture(scope="module")
def promoted(server: LogicalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Promoted]:
    url, beside, folder = server.fresh(), server.fresh(), tmp_path_factory.mktemp("promoted")

    def follower(name: str, way: type[PostgresCapture] = PostgresCapture, *, failover: bool = False) -> Follower:
        made = Follower(url, folder / name, "t", slot=f"headrace_{name}", way=way, failover=failover)
        made.begin()
        return made

    with psycopg.connect(url, autocommit=True) as primary:
        primary.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        with psycopg.connect(beside, autocommit=True) as db:
            db.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with standby(server) as replica:
            followers = {"plain": follower("plain"), "trigger": follower("trigger", TriggerCapture)}
            newer = primary.info.server_version >= FAILOVER_SLOTS
            if newer:
                followers |= {name: follower(name, failover=True) for name in ("whole", "ahead")}
                in_step(primary, replica, followers["whole"], followers["ahead"])
            primary.execute("INSERT INTO t VALUES (2)")
            if newer:
                followers["alone"] = follower("alone", failover=True)  # too late for its slot to come along
            replica.catch_up()
            there = replica.url(primary.info.dbname)
            first = followers["whole" if newer else "plain"]
            first.url = there
            with pytest.raises(EnvironmentFault, match="SOURCE_IN_RECOVERY"):
                first.land()
            with pytest.raises(EnvironmentFault, match="SOURCE_IN_RECOVERY"):
                check(there, [("public", "t")])
            with pytest.raises(EnvironmentFault, match="SOURCE_IN_RECOVERY") as as_shard:
                ShardFollower({"eu": beside, "us": there}, folder / "shards", ["t"]).begin()
            replica.part()
            primary.execute("INSERT INTO t VALUES (3)")  # this one is lost
            if newer:
                followers["ahead"].land()
            replica.promote()
            for each in followers.values():
                each.url = there
            with psycopg.connect(there, autocommit=True) as db:
                yield Promoted(followers, db, as_shard.value, beside)
            for each in followers.values():
                each.url = url
                each.capture().remove()


def test_a_standby_is_no_shard(promoted: Promoted) -> None:
    assert promoted.as_shard.message.startswith("Shard us: ")
    with psycopg.connect(promoted.beside) as db:
        there = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
        assert db.execute(there).fetchone() == (0,)


def test_with_its_slot_a_source_goes_on_and_tells_so(promoted: Promoted) -> None:
    follower, db = promoted.of("whole"), promoted.db
    assert health({"url": follower.url, "slot": follower.slot}, follower.position).slot is not None
    db.execute("INSERT INTO t VALUES (4)")
    first, *rest = follower.land()
    assert follower.rows("t") == truth(db, "t")
    assert not any(table.replaced for table in first.tables)
    assert first.keep_position
    assert "nothing was missed" in first.notices[0]
    db.execute("DELETE FROM t WHERE id = 1")
    assert not any(landing.notices for landing in (*rest, *follower.land()))
    assert follower.rows("t") == truth(db, "t")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ahead", "lacks transactions that were landed"),
        ("alone", "did not come along"),
        ("plain", "replica was promoted"),
        ("trigger", "replica was promoted"),
    ],
)
def test_where_something_may_be_missed_the_user_decides(promoted: Promoted, name: str, why: str) -> None:
    follower, db = promoted.of(name), promoted.db
    before = follower.rows("t")
    with pytest.raises(UserError, match=why) as caught:
        follower.land()
    assert caught.value.code == "SOURCE_CHANGED"
    assert "resnapshot" in (caught.value.hint or "")
    assert follower.rows("t") == before
    follower.begin()  # what a new snapshot does
    db.execute("INSERT INTO t SELECT max(id) + 1 FROM t")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


def test_where_timelines_part() -> None:
    history = "1\t0/3004B80\tno recovery target specified\n\n2\t16/B374D848\tbefore 2026-01-01\n"
    assert [left_at(history, timeline) for timeline in (1, 2, 3)] == [0x3004B80, 0x16B374D848, None]


def test_failover_is_an_option_of_capture_from_the_log(db: psycopg.Connection) -> None:
    text = "CREATE SOURCE shop FROM POSTGRES 'postgresql://db/shop' TABLES (orders) WITH (failover = {})"
    statements = [parse_statement(text.format(word)) for word in ("true", "false")]
    assert [s.request.options for s in statements if isinstance(s, CreateSource)] == [{"failover": True}, {}]
    with pytest.raises(UserError, match="true or false"):
        parse_statement(text.format("maybe"))
    tables = {"orders": ("public", "orders")}
    assert options_of("shop", "postgresql://db/shop", tables, failover=True)["failover"] is True
    with pytest.raises(UserError, match="INVALID_OPTION"):
        options_of("shop", "postgresql://db/shop", tables, capture="trigger", failover=True)
    told = [c for c in check_server(db, failover=True) if not c.ok]
    assert ["failover slots need PostgreSQL 17" in c.finding for c in told] == (
        [] if db.info.server_version >= FAILOVER_SLOTS else [True]
    )
