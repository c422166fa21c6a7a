"""Column lists and row filters under capture by triggers: as from the log, and never at a writer's cost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower

from headrace.errors import UserError
from headrace.sources.postgres.health.server_health import check
from headrace.sources.postgres.setup.open_capture import options_of
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture

Make = Callable[[Part], Follower]


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, secret text, region varchar(9), amount bigint)")
        connection.execute("INSERT INTO t SELECT g, 'secret', 'r' || g % 2, g FROM generate_series(1, 10) g")
        yield connection


@pytest.fixture
def make(url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Make]:
    made: list[Follower] = []

    def of(part: Part) -> Follower:
        made.append(Follower(url, tmp_path / "spool", "t", parts={"t": part}, way=TriggerCapture))
        made[-1].begin()
        return made[-1]

    yield of
    for follower in made:
        follower.capture().remove()


def same(follower: Follower, db: psycopg.Connection, query: str) -> int:
    """Land, and compare; gives how many rows were changed."""
    landings = follower.land()
    assert follower.rows("t") == Counter(db.execute(query).fetchall())
    return sum(landing.rows for landing in landings)


def test_rows_that_enter_and_leave_by_updates_are_inserted_and_deleted(make: Make, db: psycopg.Connection) -> None:
    follower, query = make(Part(where="amount > 5 -- and no more")), "SELECT * FROM t WHERE amount > 5"
    assert follower.rows("t") == Counter(db.execute(query).fetchall())
    db.execute("UPDATE t SET amount = amount + 2")  # 2 enter, 5 stay
    assert same(follower, db, query) == 7
    db.execute("UPDATE t SET amount = 0 WHERE id IN (1, 9); UPDATE t SET secret = 'x' WHERE id IN (2, 8)")
    assert same(follower, db, query) == 2, "what was never in it does not count"
    db.execute("UPDATE t SET id = id + 100; DELETE FROM t WHERE id IN (101, 110); INSERT INTO t VALUES (1, '', '', 6)")
    same(follower, db, query)
    db.execute("TRUNCATE t; INSERT INTO t VALUES (1, 's', 'r', 1), (9, 's', 'r', 9)")
    same(follower, db, query)
    db.execute("UPDATE t SET amount = NULL")
    same(follower, db, query)


def test_both_ways_give_the_same(make: Make, url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    part = Part(where="(region = 'r0' OR region = 'r1') AND amount BETWEEN 3 AND 20")
    log = Follower(url, tmp_path / "log", "t", slot="headrace_log", parts={"t": part})
    log.begin()
    triggers, chance = make(part), random.Random(5)
    for turn in range(40):
        low, high = sorted(chance.sample(range(25), 2))
        other, more = chance.choice(("r0", "r1", "r2")), chance.randint(-6, 6)
        db.execute(
            chance.choice(
                (
                    f"UPDATE t SET amount = amount + {more} WHERE id BETWEEN {low} AND {high}",
                    f"UPDATE t SET region = '{other}' WHERE amount BETWEEN {low} AND {high}",
                    f"UPDATE t SET region = NULL WHERE id = {low}",
                    f"DELETE FROM t WHERE id = {high}",
                    f"INSERT INTO t VALUES ({low}, 's', 'r1', {high}) ON CONFLICT (id) DO UPDATE SET amount = {low}",
                )
            )
        )
        if turn % 5 == 4:
            for follower in (log, triggers):
                same(follower, db, f"SELECT * FROM t WHERE {part.where}")
    log.capture().remove()


def test_only_listed_columns_are_captured_whatever_becomes_of_the_others(make: Make, db: psycopg.Connection) -> None:
    follower = make(Part(("id", "amount"), "amount > 1 AND id <> 7"))
    db.execute("UPDATE t SET amount = 0, secret = 'other' WHERE id < 3; DELETE FROM t WHERE id = 4")
    same(follower, db, "SELECT id, amount FROM t WHERE amount > 1 AND id <> 7")
    db.execute("ALTER TABLE t ADD more int DEFAULT 5, DROP secret; UPDATE t SET more = 6, amount = amount + 1")
    same(follower, db, "SELECT id, amount FROM t WHERE amount > 1 AND id <> 7")
    held = (
        "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE attnum > 0 AND relname LIKE %s"
    )
    assert db.execute(held, ("t\\_" + "_" * 16,)).fetchone() == (5,), "what is left out is not written twice either"


def test_a_condition_follows_the_names_of_its_columns(make: Make, db: psycopg.Connection) -> None:
    follower = make(Part(where="amount > 5 AND region = 'r1'"))
    db.execute("ALTER TABLE t RENAME amount TO sum; UPDATE t SET sum = sum + 2")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND region = 'r1'")
    db.execute("ALTER TABLE t RENAME region TO other; ALTER TABLE t RENAME secret TO region")
    db.execute("UPDATE t SET other = 'r1' WHERE id < 3")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND other = 'r1'")
    db.execute("ALTER TABLE t ALTER sum TYPE numeric(9, 2); UPDATE t SET sum = sum + 0.5")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND other = 'r1'")
    follower.begin()
    db.execute("DELETE FROM t WHERE id = 9")
    same(follower, db, "SELECT * FROM t WHERE sum > 5 AND other = 'r1'")


def test_a_column_that_a_condition_needs_is_dropped_and_nobody_who_writes_notices(
    make: Make, db: psycopg.Connection
) -> None:
    follower = make(Part(where="amount > 5"))
    before = follower.rows("t")
    db.execute("ALTER TABLE t DROP amount")
    db.execute("INSERT INTO t VALUES (11, 's', 'r'); UPDATE t SET secret = 'x'; DELETE FROM t WHERE id = 1")
    with pytest.raises(UserError, match="SOURCE_FILTER_INVALID"):
        follower.land()
    assert follower.rows("t") == before
    db.execute("ALTER TABLE t ADD amount text; INSERT INTO t VALUES (12, 's', 'r', 'many')")


def test_whoever_writes_cannot_give_a_condition_another_meaning(make: Make, db: psycopg.Connection) -> None:
    follower, query = make(Part(where="lower(region) = 'r1'")), "SELECT * FROM t WHERE pg_catalog.lower(region) = 'r1'"
    db.execute("CREATE SCHEMA mine; CREATE FUNCTION mine.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT ''r1'''")
    db.execute("CREATE FUNCTION mine.lower(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''x''; END'")
    db.execute("SET search_path = mine, pg_catalog, public; SET datestyle = 'SQL, DMY'")
    db.execute("INSERT INTO public.t VALUES (11, 's', 'R1', 1), (12, 's', 'r2', 1); UPDATE public.t SET amount = 5")
    db.execute("RESET search_path")
    same(follower, db, query)


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("nothing > 5", "nothing"),
        ("secret = 'x'", "secret"),
        ("amount >", "syntax"),
        ("random() > 0.5", "IMMUTABLE"),
        ("amount > (SELECT 1)", "subquer"),
        ("mine(amount)", "not PostgreSQL's own"),
        ("mood IS NOT NULL", "not PostgreSQL's own"),
        ("true) UNION SELECT (1", "does not accept"),
        ("true); DROP TABLE t; SELECT (true", "does not accept"),
    ],
)
def test_conditions_that_cannot_be_used_leave_nothing(
    url: str, db: psycopg.Connection, tmp_path: Path, where: str, what: str
) -> None:
    db.execute("CREATE FUNCTION public.mine(bigint) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true'")
    db.execute("CREATE TYPE mood AS ENUM ('sad'); ALTER TABLE t ADD mood mood")
    where = where.replace("mine(", "public.mine(")
    part = Part(("id", "amount", "mood"), where)
    follower = Follower(url, tmp_path / "spool", "t", parts={"t": part}, way=TriggerCapture)
    with pytest.raises(UserError, match="SOURCE_FILTER_INVALID") as caught:
        follower.begin()
    assert what in f"{caught.value.message} {caught.value.detail}"
    follower.capture().remove()
    left = "SELECT (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal), (SELECT count(*) FROM t)"
    assert db.execute(left).fetchone() == (0, 10)
    assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'headrace%'").fetchone() == (0,)


def test_parts_that_cannot_be_captured_are_told(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE bag (a int, b int); ALTER TABLE bag REPLICA IDENTITY FULL")
    names = [("public", "t"), ("public", "bag")]
    parts = {names[0]: Part(("amount", "nothing")), names[1]: Part(("a",), "a > 1")}
    found = [c.finding for c in check(url, names, parts=parts, capture="trigger") if not c.ok]
    assert [text.split(":")[0] for text in found] == [
        "has no column nothing that the stream carries",
        "is known by columns that are not among COLUMNS",
    ]
    tables = {"t": names[0]}
    assert options_of("s", url, tables, parts={"t": parts[names[1]]}, capture="trigger")["parts"]["t"]["where"]


def test_a_bag_of_some_columns_keeps_equal_rows_apart(make: Make, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
    follower, query = make(Part(("region",), "region <> 'r9'")), "SELECT region FROM t WHERE region <> 'r9'"
    db.execute(
        "UPDATE t SET region = 'r9' WHERE id < 4; UPDATE t SET amount = 1; INSERT INTO t VALUES (1, '', 'r0', 1)"
    )
    same(follower, db, query)
