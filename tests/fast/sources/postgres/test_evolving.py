"""Altered tables that are followed without being copied, and those that must be, on a real server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.mirrored import Follower

from headrace.errors import UserError
from headrace.names import TableName
from headrace.sources.postgres.server import STORED_GENERATED
from headrace.sources.postgres.snapshot.snapshots import copied
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.wal import slots, wal_capture
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.sources.postgres.wal.wal_capture import LIMIT

CREATE = {
    "keyed": "CREATE TABLE t (id int PRIMARY KEY, region text, amount bigint, note varchar(20))",
    "bag": "CREATE TABLE t (id int, region text, amount bigint, note varchar(20)); ALTER TABLE t REPLICA IDENTITY FULL",
}


@pytest.fixture
def follower(url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Follower]:
    db.execute("CREATE TABLE beside (id int PRIMARY KEY)")
    made = Follower(url, tmp_path / "spool", "t", "beside")
    yield made
    made.capture().remove()


def play(db: psycopg.Connection, script: str) -> None:
    for statement in script.split("; "):
        db.execute(statement)


def same(follower: Follower, db: psycopg.Connection) -> None:
    for table in ("t", "beside"):
        assert follower.rows(table) == Counter(db.execute(f"SELECT * FROM {table}").fetchall())


FOLLOWED = {
    "add": "ALTER TABLE t ADD extra int; UPDATE t SET extra = 7 WHERE id = 1; INSERT INTO t VALUES (4, 'x', 1, 'n', 8)",
    "add, and a default": "ALTER TABLE t ADD extra int; ALTER TABLE t ALTER extra SET DEFAULT 3",
    "add two": "ALTER TABLE t ADD e text, ADD f numeric(9,2); UPDATE t SET e = 'e', f = 1.25",
    "drop": "ALTER TABLE t DROP region; UPDATE t SET amount = 1 WHERE id = 1; DELETE FROM t WHERE id = 2",
    "rename": "ALTER TABLE t RENAME region TO place; UPDATE t SET place = 'x' WHERE id < 3",
    "rename the key": "ALTER TABLE t RENAME id TO nr; UPDATE t SET nr = nr + 10; DELETE FROM t WHERE nr = 12",
    "longer texts": "ALTER TABLE t ALTER note TYPE varchar(40); UPDATE t SET note = repeat('n', 30) WHERE id = 1",
    "text": "ALTER TABLE t ALTER note TYPE text; UPDATE t SET note = repeat('n', 50) WHERE id = 1",
    "twice": "ALTER TABLE t ADD e int; UPDATE t SET e = 1; ALTER TABLE t ADD f int; UPDATE t SET f = 2 WHERE id < 3",
    "renamed, and more": "ALTER TABLE t RENAME note TO n; UPDATE t SET n = 'x'; ALTER TABLE t ADD e int; "
    "UPDATE t SET e = 1; ALTER TABLE t RENAME n TO m; DELETE FROM t WHERE id = 2",
    "silent": "ALTER TABLE t DROP amount, ADD extra bigint",
    "in a transaction": "BEGIN; ALTER TABLE t ADD extra int, DROP note; UPDATE t SET extra = id; COMMIT",
}


@pytest.mark.parametrize("kind", CREATE)
@pytest.mark.parametrize("change", FOLLOWED.values(), ids=FOLLOWED)
def test_followed_without_a_copy(follower: Follower, db: psycopg.Connection, kind: str, change: str) -> None:
    play(db, CREATE[kind])
    db.execute("INSERT INTO t VALUES (1, 'EU', 30, 'a'), (2, NULL, 50, 'b'), (3, 'US', 70, 'c')")
    follower.begin()
    play(
        db,
        "INSERT INTO t VALUES (20, 'before', 1, 'x'); UPDATE t SET amount = 31 WHERE id = 1",
    )
    play(db, change + "; INSERT INTO beside VALUES (1)")
    landings = follower.land()
    assert not any(t.replaced for landing in landings for t in landing.tables)
    same(follower, db)
    play(db, "DELETE FROM t; INSERT INTO beside VALUES (2)")
    assert not any(t.replaced or t.reshaped for landing in follower.land() for t in landing.tables)
    same(follower, db)


COPIED = {
    "constant": "ALTER TABLE t ADD extra int DEFAULT 5",
    "computed": "ALTER TABLE t ADD extra float DEFAULT random()",
    "no default any more": "ALTER TABLE t ADD extra float DEFAULT random(); ALTER TABLE t ALTER extra DROP DEFAULT",
    "numbered": "ALTER TABLE t ADD extra int GENERATED ALWAYS AS IDENTITY",
    "generated": "ALTER TABLE t ADD extra bigint GENERATED ALWAYS AS (amount * 2) STORED",
    "rewritten": "ALTER TABLE t ADD extra bigint; ALTER TABLE t ALTER extra TYPE int USING amount",
    "wider": "ALTER TABLE t ALTER id TYPE bigint",
    "another of the name": "ALTER TABLE t DROP region; ALTER TABLE t ADD region text",
    "name taken over": "ALTER TABLE t RENAME region TO x; ALTER TABLE t RENAME note TO region",
    "one gone": "ALTER TABLE t ADD e int; UPDATE t SET e = 1; ALTER TABLE t DROP e, ADD f int; UPDATE t SET f = 2",
    "fewer, and more": "ALTER TABLE t DROP note; UPDATE t SET amount = 1; ALTER TABLE t ADD f int; UPDATE t SET f = 2",
    "gone again": "ALTER TABLE t ADD e int; UPDATE t SET e = 1; ALTER TABLE t DROP e; ALTER TABLE t RENAME note TO n",
}


@pytest.mark.parametrize("change", COPIED.values(), ids=COPIED)
def test_copied_where_rows_may_have_changed(follower: Follower, db: psycopg.Connection, change: str) -> None:
    play(db, CREATE["keyed"])
    db.execute("INSERT INTO t VALUES (1, 'EU', 30, 'a'), (2, NULL, 50, 'b')")
    follower.begin()
    play(db, f"UPDATE t SET amount = 31 WHERE id = 1; {change}; INSERT INTO beside VALUES (1)")
    landings = follower.land()
    if "STORED" in change and db.info.server_version < STORED_GENERATED:  # the stream does not carry it
        db.execute("ALTER TABLE t DROP extra")
    else:
        assert [t.name.table for landing in landings for t in landing.tables if t.replaced] == ["t"]
    same(follower, db)


def test_rows_of_partitions_that_a_default_fills_are_copied(follower: Follower, db: psycopg.Connection) -> None:
    play(db, "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p PARTITION OF t DEFAULT")
    db.execute("INSERT INTO t VALUES (1), (2)")
    follower.begin()
    play(db, "ALTER TABLE t ADD plain int; UPDATE t SET plain = id")
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    db.execute("ALTER TABLE t ADD extra int DEFAULT 7")
    assert [t.name.table for landing in follower.land() for t in landing.tables if t.replaced] == ["t"]
    same(follower, db)


def test_large_values_stay_where_columns_come_and_go(follower: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE t (a int, id int PRIMARY KEY, body text)")
    db.execute("ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    db.execute("INSERT INTO t SELECT 0, g, repeat(g::text, 9000) FROM generate_series(1, 5) g")
    follower.begin()
    play(
        db, "UPDATE t SET a = 1; ALTER TABLE t DROP a, ADD b int; UPDATE t SET b = id; UPDATE t SET id = 9 WHERE id = 5"
    )
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    same(follower, db)


@pytest.mark.parametrize("limit", [4, 9, 30])
def test_a_backlog_is_followed_part_by_part(follower: Follower, db: psycopg.Connection, limit: int) -> None:
    play(db, CREATE["keyed"])
    follower.begin()
    for number in range(8):
        db.execute("INSERT INTO t VALUES (%s, 'r', 1, 'n')", (number,))
    db.execute("ALTER TABLE t ADD extra int, DROP note")
    for number in range(8):
        db.execute("UPDATE t SET extra = %s WHERE id = %s", (number, number))
    landings = follower.land(limit)
    assert len(landings) > 1
    assert not any(t.replaced for landing in landings for t in landing.tables)
    same(follower, db)


@pytest.mark.parametrize("limit", [4, 9, 30])
def test_a_table_altered_in_two_parts_of_a_backlog_is_followed(
    follower: Follower, db: psycopg.Connection, limit: int
) -> None:
    play(db, CREATE["keyed"])
    follower.begin()
    db.execute("INSERT INTO t SELECT g, 'r', 1, 'n' FROM generate_series(0, 7) g")
    for column in ("e", "f", "g"):
        db.execute(f"ALTER TABLE t ADD {column} int")
        for number in range(8):
            db.execute(f"UPDATE t SET {column} = %s WHERE id = %s", (number, number))
    landings = follower.land(limit)
    assert not any(t.replaced for landing in landings for t in landing.tables)
    same(follower, db)


@pytest.mark.parametrize("limit", [LIMIT, 12])
def test_a_table_altered_while_the_log_is_read_is_followed(
    follower: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also where what was written meanwhile is more than a landing has by its limit."""
    peek, meanwhile = slots.peek, ["INSERT INTO t VALUES (%s, 'old', 1, 'n')"] * 5 + ["ALTER TABLE t ADD extra int"]

    def beside_others(*said: Any, **more: Any) -> Iterator[Bytes]:
        yield from peek(*said, **more)
        for number, statement in enumerate(meanwhile):
            db.execute(statement.replace("%s", str(number + 10)))
        meanwhile.clear()

    play(db, CREATE["keyed"])
    follower.begin()
    db.execute("INSERT INTO t VALUES (1, 'EU', 30, 'a')")
    monkeypatch.setattr(slots, "peek", beside_others)
    landings = follower.land(limit)
    db.execute("INSERT INTO t VALUES (2, 'new', 1, 'n', 5)")
    landings += follower.land(limit)
    assert not any(t.replaced for landing in landings for t in landing.tables)
    same(follower, db)


def test_a_table_altered_in_a_later_part_of_a_backlog_than_another_is_followed(
    follower: Follower, db: psycopg.Connection
) -> None:
    play(db, CREATE["keyed"])
    follower.begin()
    play(db, "ALTER TABLE t ADD extra int; INSERT INTO t VALUES (1, 'r', 1, 'n', 7)")
    for number in range(8):
        db.execute("INSERT INTO beside VALUES (%s)", (number,))
    play(db, "ALTER TABLE beside ADD extra int; UPDATE beside SET extra = id")
    landings = follower.land(limit=4)
    assert not any(t.replaced for landing in landings for t in landing.tables)
    same(follower, db)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE beside REPLICA IDENTITY FULL; {}; ALTER TABLE beside REPLICA IDENTITY DEFAULT",
        "ALTER TABLE beside ADD extra int; {}; ALTER TABLE beside DROP extra",
    ],
    ids=["identity", "column"],
)
@pytest.mark.parametrize("renewed", [False, True])
def test_a_table_that_looked_otherwise_for_a_while_is_copied_with_those_that_must_be(
    follower: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, change: str, renewed: bool
) -> None:
    """It is met in the log again by every further attempt, behind what the first part of a backlog has."""
    copies: list[list[str]] = []

    def counted(*said: Any) -> dict[TableName, Spooled]:
        copies.append(sorted(name.table for name in said[2]))
        return copied(*said)

    monkeypatch.setattr(wal_capture, "copied", counted)
    play(db, CREATE["keyed"])
    db.execute("INSERT INTO beside VALUES (1), (2)")
    follower.begin()
    for number in range(4):
        db.execute("INSERT INTO t VALUES (%s, 'r', 1, 'n')", (number,))
    play(db, change.format("UPDATE beside SET id = id + 10"))
    copies.clear()
    if renewed:
        follower.renew("t")
    else:
        db.execute("ALTER TABLE t ALTER amount TYPE numeric(12, 2)")
        follower.land(limit=4)
    same(follower, db)
    assert copies == [["beside", "t"]]


@pytest.mark.parametrize("name", ["_pos", "__hr_weight", '"REGION"'])
def test_a_name_that_no_mirror_can_have_is_told(follower: Follower, db: psycopg.Connection, name: str) -> None:
    play(db, CREATE["keyed"])
    db.execute("INSERT INTO t VALUES (1, 'EU', 30, 'a')")
    follower.begin()
    play(db, f"ALTER TABLE t ADD {name} int; UPDATE t SET {name} = 1")
    with pytest.raises(UserError, match="SOURCE_NOT_READY"):
        follower.land()
    play(db, f"ALTER TABLE t RENAME {name} TO fine; UPDATE t SET fine = 2")
    follower.land()
    same(follower, db)
