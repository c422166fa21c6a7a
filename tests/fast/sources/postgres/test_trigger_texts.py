"""Texts of users' types that triggers capture: as the server writes them, whatever their owners have made."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth

from headrace.sources.postgres.triggers import change_tables
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture

SCHEMA = "headrace_f"
TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (n int, m mood);
CREATE DOMAIN felt AS mood;
CREATE TYPE moods AS RANGE (subtype = mood);
CREATE TYPE several AS (l mood[]);
CREATE TABLE t (id int PRIMARY KEY, m mood, f felt, p pair, many several, r moods, note text)
"""
ROWS = """
INSERT INTO t VALUES (1, 'sad', 'ok', (1, 'ok'), '("{sad,ok}")', '[sad,ok]', 'x'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 'ok', 'ok', (NULL, NULL), '({NULL})', 'empty', ''),
    (4, 'ok', 'sad', (2, NULL), '({})', '(,ok)', 'y')
"""
CASTS = """
CREATE FUNCTION said(mood) RETURNS text LANGUAGE sql AS $$ SELECT 'quite ' || pg_catalog.format('%s', $1) $$;
CREATE FUNCTION said(pair) RETURNS text LANGUAGE sql AS $$ SELECT 'a pair' $$;
CREATE CAST (mood AS text) WITH FUNCTION said(mood);
CREATE CAST (pair AS text) WITH FUNCTION said(pair)
"""
CHANGES = (
    "UPDATE t SET note = 'changed', m = 'sad' WHERE id <> 2",
    "INSERT INTO t SELECT id + 10, m, f, p, many, r, note FROM t",
    "DELETE FROM t WHERE id IN (1, 12)",
)


@pytest.fixture
def follower(url: str, db: psycopg.Connection, tmp_path: Path) -> Follower:
    db.execute(TYPES)
    db.execute(ROWS)
    made = Follower(url, tmp_path / "spool", "t", way=TriggerCapture)
    made.begin()
    return made


def as_written(db: psycopg.Connection) -> object:
    """What the table has, its values as COPY writes them."""
    written = ", ".join(
        f"CASE WHEN num_nulls({c}) = 0 THEN format('%s', {c}) END" for c in ("m", "f", "p", "many", "r")
    )
    return truth(db, f"(SELECT id, {written}, note FROM t) AS x")


def test_casts_of_users_are_not_asked(follower: Follower, db: psycopg.Connection) -> None:
    db.execute(CASTS)
    assert db.execute("SELECT m::text FROM t WHERE id = 3").fetchone() == ("quite ok",)
    for change in CHANGES:
        db.execute(change)
        landings = follower.land()
        assert follower.rows("t") == as_written(db), change
        assert not any(each.replaced for landing in landings for each in landing.tables)


def test_whoever_owns_a_type_or_writes_gets_nothing_done_with_our_rights(
    follower: Follower, db: psycopg.Connection
) -> None:
    db.execute("CREATE TABLE loot (what text); CREATE SCHEMA own")
    for kind, result in (("mood", "'x'::text"), ("pair", "'x'::text")):
        db.execute(
            f"CREATE FUNCTION own.steal({kind}) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
            f"INSERT INTO public.loot VALUES ('cast of {kind}'); RETURN {result}; END $$"
        )
        db.execute(f"CREATE CAST ({kind} AS text) WITH FUNCTION own.steal({kind})")
    for name, arguments, result in (("-", "RIGHTARG = bigint", "$1"), ("=", "LEFTARG = int, RIGHTARG = int", "true")):
        types = "bigint" if name == "-" else "int, int"
        db.execute(
            f"CREATE FUNCTION own.{'minus' if name == '-' else 'equal'}({types}) "
            f"RETURNS {'bigint' if name == '-' else 'boolean'} LANGUAGE plpgsql AS $$ BEGIN "
            f"INSERT INTO public.loot VALUES ('operator {name}'); RETURN {result}; END $$"
        )
        function = f"own.{'minus' if name == '-' else 'equal'}"
        db.execute(f"CREATE OPERATOR own.{name} (FUNCTION = {function}, {arguments})")
    db.execute("SET search_path = own, pg_catalog, public")
    db.execute("UPDATE public.t SET note = 'again'; INSERT INTO public.t (id, m) VALUES (9, 'ok'); TRUNCATE public.t")
    db.execute("RESET search_path")
    assert db.execute("SELECT * FROM loot").fetchall() == []
    follower.land()
    assert not follower.rows("t")


def test_what_a_former_version_captured_is_not_handed_over_to_the_log(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the way changes, too, tables are taken anew first."""
    db.execute(TYPES)
    db.execute(ROWS)
    with monkeypatch.context() as former:
        former.setattr(change_tables, "_WRITTEN", "{0}::pg_catalog.text")
        follower = Follower(url, tmp_path / "spool", "t", way=TriggerCapture)
        follower.begin()
    follower.way = AutoCapture
    db.execute(CASTS)
    db.execute("UPDATE t SET m = 'ok' WHERE id = 1")
    follower.land()
    assert follower.rows("t") == as_written(db)


def test_tables_captured_by_a_former_version_are_taken_anew_once(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(TYPES)
    db.execute(ROWS)
    db.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    with monkeypatch.context() as former:
        former.setattr(change_tables, "_WRITTEN", "{0}::pg_catalog.text")
        former.setattr(change_tables, "_SEARCH_PATH", "")
        follower = Follower(url, tmp_path / "spool", "t", "plain", way=TriggerCapture)
        follower.begin()
    db.execute(CASTS)
    db.execute("INSERT INTO plain VALUES (1)")
    db.execute(CHANGES[0])
    landings = follower.land()
    assert [each.name.table for landing in landings for each in landing.tables if each.replaced] == ["t"]
    assert follower.rows("t") == as_written(db)
    assert follower.rows("plain") == truth(db, "plain")
    found = db.execute(
        "SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE nspname = %s"
        " AND proname LIKE 'b\\_%%' AND proconfig IS NULL",
        (SCHEMA,),
    )
    assert found.fetchall() == []
    db.execute(CHANGES[1])
    db.execute("INSERT INTO plain VALUES (2)")
    assert not any(each.replaced for landing in follower.land() for each in landing.tables)
    assert follower.rows("t") == as_written(db)
    assert follower.rows("plain") == truth(db, "plain")
