"""Partitions whose changes PostgreSQL does not tell, or not as their table's: refused, noticed, never missed."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.errors import UserError
from headrace.sources.postgres.citus.cluster_catalog import other_storage
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.health.server_health import check
from headrace.sources.postgres.server import tables
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

PARTED = """
CREATE TABLE parted (id int PRIMARY KEY, other int NOT NULL, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (100) TO (200);
CREATE UNIQUE INDEX low_other ON low (other);
CREATE UNIQUE INDEX low_both ON low (other, id);
INSERT INTO parted SELECT g, g, 'x' FROM generate_series(1, 150) g
"""
CHANGES = (
    "UPDATE low SET v = 'y' WHERE id < 5",
    "UPDATE low SET id = 0 WHERE id = 5",
    "DELETE FROM low WHERE id = 6",
    "UPDATE parted SET id = id + 190 WHERE id = 7",
    "DELETE FROM parted WHERE id = 8; INSERT INTO parted VALUES (8, 8, 'again')",
    "UPDATE high SET other = 0 WHERE id = 101; DELETE FROM high WHERE id = 102",
)


@pytest.fixture
def parted(db: psycopg.Connection) -> psycopg.Connection:
    db.execute(PARTED)
    return db


def run(db: psycopg.Connection, *scripts: str) -> None:
    for script in scripts:
        for statement in filter(None, script.split("; ")):
            db.execute(statement)


def refused(follower: Follower, finding: str) -> str:
    """What landing says that has to be done."""
    with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
        follower.land()
    assert finding in (caught.value.detail or "")
    return (caught.value.hint or "").partition("\n")[2]


IDENTITIES = {
    "another index": ("ALTER TABLE low REPLICA IDENTITY USING INDEX low_other", {"low"}),
    "table whole": ("ALTER TABLE parted REPLICA IDENTITY FULL", {"low", "high"}),
    "table nothing": ("ALTER TABLE parted REPLICA IDENTITY NOTHING", {"low", "high"}),
}


@pytest.mark.parametrize("case", IDENTITIES)
def test_partitions_with_another_identity_are_told_with_the_sql_that_helps(
    url: str, parted: psycopg.Connection, tmp_path: Path, case: str
) -> None:
    statement, partitions = IDENTITIES[case]
    parted.execute(statement)
    (wrong,) = (c for c in check(url, [("public", "parted")]) if not c.ok)
    assert {p for p in ("low", "high") if f"public.{p}" in wrong.finding} == partitions
    assert all(c.ok for c in check(url, [("public", "parted")], capture="trigger"))
    follower = Follower(url, tmp_path, "parted")
    with pytest.raises(UserError, match="SOURCE_NOT_READY"):
        follower.begin()
    run(parted, (wrong.remedy or "").replace(";\n", "; ").rstrip(";"))
    follower.begin()
    run(parted, *CHANGES)
    follower.land()
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


@pytest.mark.parametrize("identity", ["FULL", "USING INDEX low_both", "DEFAULT"])
def test_partitions_that_tell_more_than_the_key_are_followed(
    url: str, parted: psycopg.Connection, tmp_path: Path, identity: str
) -> None:
    follower = Follower(url, tmp_path, "parted")
    follower.begin()
    run(parted, "UPDATE low SET v = 'first' WHERE id = 1", f"ALTER TABLE low REPLICA IDENTITY {identity}", *CHANGES)
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


def test_an_identity_that_a_partition_had_for_a_while_has_the_table_taken_anew(
    url: str, parted: psycopg.Connection, tmp_path: Path
) -> None:
    follower = Follower(url, tmp_path, "parted")
    follower.begin()
    other = "ALTER TABLE low REPLICA IDENTITY USING INDEX low_other"
    run(parted, "DELETE FROM low WHERE id = 20", other, *CHANGES, "ALTER TABLE low REPLICA IDENTITY DEFAULT")
    assert [t.name.table for landing in follower.land() for t in landing.tables if t.replaced] == ["parted"]
    assert follower.rows("parted") == truth(parted, "parted")
    run(parted, "DELETE FROM low WHERE id = 21")
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    run(parted, other, "DELETE FROM low WHERE id = 22")
    remedy = refused(follower, "another replica identity")
    assert remedy == 'ALTER TABLE "public"."low" REPLICA IDENTITY DEFAULT;'
    run(parted, "UPDATE low SET id = 22 WHERE id = 23", remedy, "DELETE FROM low WHERE id = 24")
    follower.land()
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


def test_column_lists_never_make_the_statements_of_writers_fail(
    url: str, parted: psycopg.Connection, tmp_path: Path
) -> None:
    """PostgreSQL refuses an UPDATE of a partition whose identity has columns that are not published."""
    part, names = Part(("id", "v")), [("public", "parted")]
    for identity in ("FULL", "USING INDEX low_both"):
        parted.execute(f"ALTER TABLE low REPLICA IDENTITY {identity}")
        with pytest.raises(UserError, match=r"known by more than COLUMNS.*public\.low"):
            Follower(url, tmp_path, "parted", parts={"parted": part}).begin()
        assert all(c.ok for c in check(url, names, parts={names[0]: part}, capture="trigger"))
    parted.execute("ALTER TABLE low REPLICA IDENTITY DEFAULT")
    follower = Follower(url, tmp_path, "parted", parts={"parted": part})
    follower.begin()
    run(parted, *CHANGES)
    follower.land()
    assert follower.rows("parted") == truth(parted, "(SELECT id, v FROM parted) AS s")
    follower.capture().remove()


def test_a_table_and_a_partition_of_it_are_not_captured_by_one_source(
    url: str, parted: psycopg.Connection, tmp_path: Path
) -> None:
    """PostgreSQL tells what changes in the partition as changes of the table; its own mirror would stand still."""
    names = [("public", "parted"), ("public", "low")]
    assert [c.name for c in check(url, names) if not c.ok] == ["public.low"]
    with pytest.raises(UserError, match=r"low: is a partition of public\.parted"):
        Follower(url, tmp_path, "parted", "low").begin()
    for first, second in (("parted", "low"), ("low", "parted")):
        follower = Follower(url, tmp_path / first, first)
        follower.begin()
        names_before = dict(follower.names)
        with pytest.raises(UserError, match="is a partition of"):
            follower.renew(second)
        follower.names = names_before
        run(parted, f"UPDATE parted SET v = '{first}' WHERE id < 3")
        follower.land()
        assert follower.rows(first) == truth(parted, first)
        follower.capture().remove()


def test_a_captured_table_that_becomes_a_partition_of_another_is_told(
    url: str, parted: psycopg.Connection, tmp_path: Path
) -> None:
    parted.execute("CREATE TABLE later (id int PRIMARY KEY, other int NOT NULL, v text)")
    follower = Follower(url, tmp_path, "parted", "later")
    follower.begin()
    run(parted, "INSERT INTO later VALUES (300, 1, 'a')")
    run(parted, "ALTER TABLE parted ATTACH PARTITION later FOR VALUES FROM (300) TO (400)")
    run(parted, "INSERT INTO later VALUES (301, 1, 'b')")
    refused(follower, "later: is a partition of public.parted")
    later = next(n for n in follower.names if n.table == "later")  # which the user takes out of the source
    follower.mirrors.tables.pop(later)
    follower.names = {n: of for n, of in follower.names.items() if n != later}
    follower.capture().tidy()
    run(parted, "UPDATE later SET v = 'c'")
    follower.land()
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("between", ["away", "elsewhere"])
def test_a_partition_that_was_written_to_while_it_was_detached(
    url: str, parted: psycopg.Connection, tmp_path: Path, way: Way, between: str
) -> None:
    """Nothing tells of these rows: the partition is published, or captured, as the table's while it is attached."""
    follower = Follower(url, tmp_path, "parted", way=way)
    follower.begin()
    attach = "ATTACH PARTITION high FOR VALUES FROM (100) TO (200)"
    written = "UPDATE high SET v = 'z' WHERE id = 103", "DELETE FROM high WHERE id = 104"
    if between == "elsewhere":  # where its own triggers do not fire
        run(parted, "CREATE TABLE another (LIKE parted) PARTITION BY RANGE (id)")
        written = tuple(statement.replace("high", "another") for statement in written)
        written = (f"ALTER TABLE another {attach}", *written, "ALTER TABLE another DETACH PARTITION high")
    run(parted, "ALTER TABLE parted DETACH PARTITION high", *written, f"ALTER TABLE parted {attach}", *CHANGES)
    assert [t.name.table for landing in follower.land() for t in landing.tables if t.replaced] == ["parted"]
    assert follower.rows("parted") == truth(parted, "parted")
    run(parted, "UPDATE parted SET v = 'later' WHERE id IN (3, 103)")
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


def test_a_partition_of_a_partition_that_was_written_to_while_both_were_detached(
    url: str, parted: psycopg.Connection, tmp_path: Path
) -> None:
    run(parted, "CREATE TABLE upper PARTITION OF parted FOR VALUES FROM (200) TO (400) PARTITION BY RANGE (id)")
    run(parted, "CREATE TABLE top PARTITION OF upper FOR VALUES FROM (300) TO (400)", "INSERT INTO top VALUES (300, 0)")
    follower = Follower(url, tmp_path, "parted")
    follower.begin()
    run(parted, "ALTER TABLE parted DETACH PARTITION upper", "UPDATE upper SET v = 'z'")
    run(parted, "ALTER TABLE parted ATTACH PARTITION upper FOR VALUES FROM (200) TO (400)", *CHANGES)
    follower.land()
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


@pytest.mark.parametrize("limit", [1, 1_000_000])
def test_a_partition_that_was_there_for_a_while(
    url: str, parted: psycopg.Connection, tmp_path: Path, limit: int
) -> None:
    """The stream has its rows as the table's, and not that they have gone with it, or came with it."""
    run(parted, "CREATE TABLE later (LIKE parted)", "ALTER TABLE later ADD PRIMARY KEY (id)")
    run(parted, "INSERT INTO later VALUES (300, 1, 'came')", "CREATE TABLE beside (id int PRIMARY KEY)")
    follower = Follower(url, tmp_path, "parted", "beside")
    follower.begin()
    run(parted, "INSERT INTO beside VALUES (1)", *CHANGES[:2])
    run(parted, "ALTER TABLE parted ATTACH PARTITION later FOR VALUES FROM (300) TO (400)")
    run(parted, "INSERT INTO parted VALUES (301, 1, 'b')", "UPDATE parted SET v = 'c' WHERE id IN (1, 300)")
    run(parted, "ALTER TABLE parted DETACH PARTITION later", *CHANGES[2:], "INSERT INTO beside VALUES (2)")
    landings = follower.land(limit)
    assert follower.rows("parted") == truth(parted, "parted")
    assert follower.rows("beside") == truth(parted, "beside")
    assert [t.name.table for landing in landings for t in landing.tables if t.replaced] == ["parted"]
    run(parted, "TRUNCATE parted, beside", "INSERT INTO parted VALUES (1, 1, 'anew')")
    follower.land()
    assert follower.rows("parted") == truth(parted, "parted")
    follower.capture().remove()


UNFIT = {
    "unlogged": "CREATE UNLOGGED TABLE beyond PARTITION OF bag FOR VALUES FROM (500) TO (600)",
    "foreign": "CREATE FOREIGN DATA WRAPPER f; CREATE SERVER s FOREIGN DATA WRAPPER f; "
    "CREATE FOREIGN TABLE beyond PARTITION OF bag FOR VALUES FROM (500) TO (600) SERVER s",
}


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("kind", UNFIT)
def test_partitions_whose_changes_nobody_tells(
    url: str, db: psycopg.Connection, tmp_path: Path, kind: str, way: Way
) -> None:
    run(db, "CREATE TABLE bag (id int, v text) PARTITION BY RANGE (id)", "ALTER TABLE bag REPLICA IDENTITY FULL")
    run(db, "CREATE TABLE near PARTITION OF bag FOR VALUES FROM (0) TO (100)", "ALTER TABLE near REPLICA IDENTITY FULL")
    run(db, "INSERT INTO bag VALUES (1, 'a'), (1, 'a')")
    follower = Follower(url, tmp_path, "bag", way=way)
    follower.begin()
    run(db, "DELETE FROM near WHERE ctid = '(0,1)'", UNFIT[kind])
    refused(follower, kind)
    capture = "wal" if way is PostgresCapture else "trigger"
    (wrong,) = (c for c in check(url, [("public", "bag")], capture=capture) if not c.ok)
    assert kind in wrong.finding
    if kind == "unlogged":
        run(db, "INSERT INTO bag VALUES (501, 'unseen')", "ALTER TABLE beyond SET LOGGED")
        run(db, "ALTER TABLE beyond REPLICA IDENTITY FULL", "INSERT INTO bag VALUES (502, 'seen')")
    else:
        run(db, "ALTER TABLE bag DETACH PARTITION beyond")
    follower.land()
    assert follower.rows("bag") == truth(db, "bag")
    follower.capture().remove()


def test_a_table_that_was_unlogged_for_a_while_may_have_been_emptied_by_a_crash(
    server: LogicalServer, url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    """Under triggers; PostgreSQL refuses it for tables that are published."""
    run(db, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follower = Follower(url, tmp_path, "t", way=TriggerCapture)
    follower.begin()
    run(db, "ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (2)")
    with pytest.raises(UserError, match=r"CAPTURE_REMOVED.*unlogged"):
        follower.land()
    server.restart("immediate")
    with psycopg.connect(url, autocommit=True) as again:
        with pytest.raises(UserError, match="SOURCE_NOT_READY"):
            follower.begin()
        run(again, "ALTER TABLE t SET LOGGED")
        follower.begin()
        run(again, "INSERT INTO t VALUES (3)")
        follower.land()
        assert follower.rows("t") == truth(again, "t")
    follower.capture().remove()


def test_a_partitioned_table_is_stored_as_its_partitions_are(url: str, parted: psycopg.Connection) -> None:
    """It may name another way for those to come, from PostgreSQL 17 on; the catalog is made to look so on others."""
    parted.execute("ALTER TABLE parted DETACH PARTITION high; CREATE TABLE leaf (LIKE parted)")
    parted.execute("CREATE TABLE mid PARTITION OF parted FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id)")
    parted.execute("ALTER TABLE mid ATTACH PARTITION leaf FOR VALUES FROM (100) TO (150)")
    parted.execute("CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler")
    parted.execute("SET allow_system_table_mods = on")

    def store(*names: str) -> None:
        method = "(SELECT oid FROM pg_am WHERE amname = 'other')"
        parted.execute(f"UPDATE pg_class SET relam = {method} WHERE relname = ANY(%s)", (list(names),))

    with connected(url) as connection:
        version = connection.info.server_version
        (found,) = tables(connection, version, names=[("public", "parted")])
        assert len(found.table.parts) == 3
        store("parted", "mid")
        assert other_storage(connection, [found.table]) == {}
        store("leaf")
        assert other_storage(connection, [found.table]) == {
            found.table.oid: "partitioned, with a partition stored as other"
        }
