"""Column lists and row filters on a real server: the mirror has that part of the table, at every landing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower

from headrace.errors import UserError
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.server import tables
from headrace.sources.postgres.setup.preflight import check
from headrace.sources.postgres.setup.projection import Part, objections

Make = Callable[[Part], Follower]


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, secret text, region text, amount bigint)")
        connection.execute("INSERT INTO t SELECT g, 'secret', 'r' || g % 2, g FROM generate_series(1, 10) g")
        yield connection


@pytest.fixture
def make(url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Make]:
    made: list[Follower] = []

    def of(part: Part) -> Follower:
        made.append(Follower(url, tmp_path / "spool", "t", parts={"t": part}))
        made[-1].begin()
        return made[-1]

    yield of
    for follower in made:
        follower.capture().remove()


def same(follower: Follower, db: psycopg.Connection, query: str, *, copied: bool = False) -> None:
    landings = follower.land()
    assert any(t.replaced for landing in landings for t in landing.tables) is copied
    assert follower.rows("t") == Counter(db.execute(query).fetchall())


def test_only_listed_columns_are_captured(make: Make, db: psycopg.Connection) -> None:
    follower = make(Part(("id", "amount")))
    db.execute("UPDATE t SET amount = 0, secret = 'other' WHERE id < 3")
    db.execute("DELETE FROM t WHERE id = 4")
    same(follower, db, "SELECT id, amount FROM t")
    db.execute("ALTER TABLE t ADD more int DEFAULT 5, DROP secret")
    db.execute("INSERT INTO t VALUES (11, 'r', 1, 2)")
    same(follower, db, "SELECT id, amount FROM t")
    db.execute("ALTER TABLE t RENAME amount TO sum")
    db.execute("UPDATE t SET sum = 8 WHERE id = 1")
    same(follower, db, "SELECT id, sum FROM t")
    follower.renew("t")
    assert follower.rows("t") == Counter(db.execute("SELECT id, sum FROM t").fetchall())
    follower.begin()
    assert follower.rows("t") == Counter(db.execute("SELECT id, sum FROM t").fetchall())
    db.execute("ALTER TABLE t DROP sum CASCADE")  # PostgreSQL takes the table out of the publication
    with pytest.raises(UserError, match="CAPTURE_REMOVED"):
        follower.land()


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_rows_come_and_go_with_their_condition(make: Make, db: psycopg.Connection, identity: str) -> None:
    db.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    follower = make(Part(where="id > 5 -- and no more"))
    db.execute("INSERT INTO t VALUES (0, 's', 'r', 1), (20, 's', 'r', 1)")
    db.execute("UPDATE t SET amount = 9")
    db.execute("UPDATE t SET id = 30 WHERE id = 1")
    db.execute("UPDATE t SET id = -4 WHERE id = 6; UPDATE t SET id = 6 WHERE id = 5; DELETE FROM t WHERE id IN (2, 7)")
    same(follower, db, "SELECT * FROM t WHERE id > 5")
    db.execute("TRUNCATE t; INSERT INTO t VALUES (1, 's', 'r', 1), (9, 's', 'r', 1)")
    same(follower, db, "SELECT * FROM t WHERE id > 5")


def test_a_condition_on_any_column_of_whole_rows(make: Make, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    follower = make(Part(where="amount > 5 AND region IS NOT NULL"))
    db.execute("UPDATE t SET amount = amount + 3")
    db.execute("UPDATE t SET region = NULL WHERE id = 9; DELETE FROM t WHERE id = 8")
    same(follower, db, "SELECT * FROM t WHERE amount > 5 AND region IS NOT NULL")
    db.execute("ALTER TABLE t RENAME amount TO sum")
    db.execute("UPDATE t SET sum = 1 WHERE id = 10")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND region IS NOT NULL")
    follower.renew("t")
    db.execute("UPDATE t SET sum = 100")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND region IS NOT NULL")
    follower.begin()
    assert follower.rows("t") == Counter(db.execute("SELECT * FROM t WHERE region IS NOT NULL").fetchall())


def test_large_values_of_rows_that_come_by_a_new_key(make: Make, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE t ALTER secret SET STORAGE EXTERNAL")
    db.execute("UPDATE t SET secret = repeat('x', 9000)")
    follower = make(Part(where="id > 5"))
    db.execute("UPDATE t SET id = id + 20 WHERE id < 3")
    same(follower, db, "SELECT * FROM t WHERE id > 5", copied=True)
    db.execute("UPDATE t SET id = id + 20 WHERE id = 21")
    same(follower, db, "SELECT * FROM t WHERE id > 5")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("amount > 5", "uses amount"),
        ("id >", "syntax error"),
        ("nothing = 1", "does not exist"),
        ("id", "must be type boolean"),
        ("id > (SELECT 1)", "publication WHERE"),
        ("random() > id", "publication WHERE"),
        ("id > 0); DROP TABLE t; --", ""),
        ("id = 'x'", "invalid input syntax"),
    ],
)
def test_conditions_that_cannot_be_used(make: Make, db: psycopg.Connection, where: str, what: str) -> None:
    with pytest.raises(UserError, match="SOURCE_FILTER_INVALID") as caught:
        make(Part(where=where))
    assert what in f"{caught.value.message} {caught.value.detail}"
    left = "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM t)"
    assert db.execute(left).fetchone() == (0, 10)
    db.execute("UPDATE t SET amount = 0")


def test_parts_that_cannot_be_captured_are_told(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE whole (id int, a int); ALTER TABLE whole REPLICA IDENTITY FULL")
    names = [("public", "t"), ("public", "whole")]
    parts = {names[0]: Part(("amount", "nothing")), names[1]: Part(("a",))}
    with connected(url) as connection:
        found = [c.finding for c in check(connection, names, (), parts=parts)[0] if not c.ok]
        (whole,) = tables(connection, 180000, names=names[1:])
    assert [text.split(":")[0] for text in found] == [
        "has no column nothing that the stream carries",
        "is known by columns that are not among COLUMNS",
        "has REPLICA IDENTITY FULL, which needs all columns",
    ]
    assert objections(whole, Part(where="a > 1"), 140000) == ("COLUMNS and WHERE need PostgreSQL 15, and this is 14",)
    assert objections(whole, Part(), 140000) == ()


def test_another_condition_behind_our_back_is_noticed(make: Make, db: psycopg.Connection) -> None:
    follower = make(Part(where="id > 5"))
    db.execute(f"ALTER PUBLICATION {follower.slot} SET TABLE t WHERE (id > 6)")
    with pytest.raises(UserError, match="CAPTURE_REMOVED"):
        follower.land()
    follower.begin()
    db.execute("DELETE FROM t WHERE id = 9")
    same(follower, db, "SELECT * FROM t WHERE id > 5")


def test_tables_join_others_whose_columns_and_names_have_changed(
    url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL; CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)")
    follower = Follower(url, tmp_path / "spool", "t", parts={"t": Part(where="amount > 5")})
    follower.begin()
    db.execute("ALTER TABLE t RENAME amount TO sum; ALTER TABLE t RENAME TO renamed")
    follower.land()
    follower.renew("u")
    db.execute("UPDATE renamed SET sum = sum + 1; INSERT INTO u VALUES (2)")
    same(follower, db, "SELECT * FROM renamed WHERE sum > 5")
    follower.renew("u")
    assert follower.rows("u") == Counter([(1,), (2,)])
    follower.capture().remove()
