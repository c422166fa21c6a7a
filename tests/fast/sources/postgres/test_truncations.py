"""TRUNCATE under capture by triggers: other triggers may write to the table before, between and after ours."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth

from headrace.sources.postgres.triggers.change_tables import suffix_of
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture

SCHEMA = "headrace_f"


@pytest.fixture
def pair(url: str, db: psycopg.Connection, tmp_path: Path) -> Follower:
    """A table, and one that refers to it; `stray` is for what nobody truncates."""
    db.execute("CREATE TABLE parent (id int PRIMARY KEY, note text); CREATE TABLE stray (id int)")
    db.execute("CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent, note text)")
    db.execute("INSERT INTO parent SELECT g, 'old' FROM generate_series(1, 5) g")
    db.execute("INSERT INTO child SELECT g, g, 'old' FROM generate_series(1, 5) g")
    follower = Follower(url, tmp_path / "spool", "parent", "child", "stray", way=TriggerCapture)
    follower.begin()
    return follower


def on_truncate(db: psycopg.Connection, name: str, when: str, table: str, body: str) -> None:
    """Create a trigger of somebody else's."""
    db.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body}; RETURN NULL; END$$")
    db.execute(f"CREATE TRIGGER {name} {when} TRUNCATE ON {table} EXECUTE FUNCTION {name}()")


def landed_exactly(follower: Follower, db: psycopg.Connection) -> list[str]:
    """Land and compare; return the tables that were taken anew."""
    landings = follower.land()
    for table in ("parent", "child", "stray"):
        assert follower.rows(table) == truth(db, table), table
    return sorted({t.name.table for landing in landings for t in landing.tables if t.replaced})


@pytest.mark.parametrize(
    ("name", "when"), [("a_first", "AFTER"), ("z_last", "AFTER"), ("a_first", "BEFORE"), ("z_last", "BEFORE")]
)
def test_rows_that_another_trigger_writes_when_a_table_is_emptied(
    pair: Follower, db: psycopg.Connection, name: str, when: str
) -> None:
    written = "INSERT INTO child VALUES (100, NULL, 'trigger')"
    written += "; UPDATE child SET note = 'trigger' WHERE id = 3; DELETE FROM child WHERE id = 4"
    on_truncate(db, name, when, "child", written)
    db.execute("BEGIN; UPDATE child SET note = 'new' WHERE id = 2; TRUNCATE child")
    db.execute("INSERT INTO child VALUES (200, NULL, 'after'); COMMIT; INSERT INTO stray VALUES (1)")
    unclear = (name, when) in {("a_first", "AFTER"), ("z_last", "BEFORE")}
    assert landed_exactly(pair, db) == (["child"] if unclear else [])
    db.execute("UPDATE child SET note = 'later'; TRUNCATE child; INSERT INTO child VALUES (300, NULL, 'again')")
    landed_exactly(pair, db)


def test_a_trigger_of_the_parent_writes_to_the_child_that_is_emptied_with_it(
    pair: Follower, db: psycopg.Connection
) -> None:
    on_truncate(db, "z_audit", "AFTER", "parent", "INSERT INTO child VALUES (100, NULL, 'trigger')")
    db.execute("TRUNCATE parent CASCADE")
    assert landed_exactly(pair, db) == ["child"]
    db.execute("BEGIN; TRUNCATE parent CASCADE; UPDATE child SET id = 1; TRUNCATE child; COMMIT")
    db.execute("INSERT INTO child VALUES (2, NULL, 'last')")
    assert landed_exactly(pair, db) == [], "the last TRUNCATE is the one that counts, and it is clear"


def test_truncations_that_were_rolled_back_and_repeated(pair: Follower, db: psycopg.Connection) -> None:
    with db.transaction():
        db.execute("INSERT INTO stray VALUES (1); TRUNCATE stray; INSERT INTO stray VALUES (2)")
        with db.transaction(force_rollback=True):
            db.execute("TRUNCATE stray; INSERT INTO stray VALUES (3)")
        db.execute("TRUNCATE stray; INSERT INTO stray VALUES (4)")
        with db.transaction(force_rollback=True):
            db.execute("TRUNCATE stray")
        db.execute("INSERT INTO stray VALUES (5)")
    assert landed_exactly(pair, db) == []


def test_a_source_of_which_no_trigger_tells_when_a_truncate_begins_is_completed(
    pair: Follower, db: psycopg.Connection
) -> None:
    """As releases before this one installed it."""
    db.execute(f"DROP FUNCTION {SCHEMA}.b_{suffix_of('public', 'child')} CASCADE")
    db.execute("UPDATE child SET note = 'new'")
    assert landed_exactly(pair, db) == []
    db.execute("TRUNCATE child; INSERT INTO child VALUES (1, NULL, 'after')")
    assert landed_exactly(pair, db) == ["child"]
    db.execute("TRUNCATE child; INSERT INTO child VALUES (2, NULL, 'after')")
    assert landed_exactly(pair, db) == []
