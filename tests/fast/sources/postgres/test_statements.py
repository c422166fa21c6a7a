"""Statements of all kinds are followed, whichever way captures them; of the named tables, and no others."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way
from psycopg import sql

from headrace.errors import UserError
from headrace.sources.postgres.health.server_health import check
from headrace.sources.postgres.server import STORED_GENERATED
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS = pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])


def following(url: str, folder: Path, way: Way, *tables: str) -> Follower:
    follower = Follower(url, folder / "spool", *tables, way=way)
    follower.begin()
    return follower


STATEMENTS = {
    "upsert": "INSERT INTO orders VALUES (1, 'again', 1) ON CONFLICT (id) DO UPDATE SET region = excluded.region",
    "ignore": "INSERT INTO orders VALUES (1, 'again', 1), (9, 'new', 1) ON CONFLICT DO NOTHING",
    "merge": "MERGE INTO orders o USING (VALUES (1, 5), (2, 0), (3, 7)) v (id, n) ON o.id = v.id "
    "WHEN MATCHED AND n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET amount = n "
    "WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'm', n)",
    "keys": "UPDATE orders SET id = -id; UPDATE orders SET id = 3 + id",
    "swap": "BEGIN; UPDATE orders SET id = 0 WHERE id = 1; UPDATE orders SET id = 1 WHERE id = 2; "
    "UPDATE orders SET id = 2 WHERE id = 0; COMMIT",
    "truncate": "BEGIN; INSERT INTO orders VALUES (7, 'gone', 1); TRUNCATE orders; "
    "INSERT INTO orders VALUES (8, 'after', 1); UPDATE orders SET amount = 2; COMMIT",
    "cascade": "INSERT INTO orders VALUES (7, 'x', 1); TRUNCATE orders, beside RESTART IDENTITY CASCADE; "
    "TRUNCATE orders; INSERT INTO orders VALUES (1, 'y', 1); DELETE FROM orders WHERE id = 1",
    "with": "WITH gone AS (DELETE FROM orders RETURNING *) "
    "INSERT INTO orders SELECT id + 100, region, amount FROM gone",
    "replica": "SET session_replication_role = replica; INSERT INTO orders VALUES (3, 'replica', 1); "
    "DELETE FROM orders WHERE id = 1; RESET session_replication_role",
    "nothing": "UPDATE orders SET amount = 1 WHERE false; DELETE FROM orders WHERE false",
    "messages": "SELECT pg_logical_emit_message(true, 'app', 'x'); BEGIN; UPDATE orders SET amount = 0; "
    "SELECT pg_logical_emit_message(true, 'headrace', 'y'), pg_logical_emit_message(false, 'app', 'z'); COMMIT",
}


@WAYS
@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements_of_all_kinds(url: str, db: psycopg.Connection, tmp_path: Path, kind: str, way: Way) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount bigint)")
    db.execute("CREATE TABLE beside (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders VALUES (1, 'EU', 30), (2, NULL, 50)")
    follower = following(url, tmp_path, way, "orders", "beside")
    for statement in STATEMENTS[kind].split("; "):
        db.execute(statement)
    follower.land()
    for table in ("orders", "beside"):
        assert follower.rows(table) == truth(db, table)
    follower.capture().remove()


@WAYS
def test_copy_and_actions_of_foreign_keys(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    db.execute("CREATE TABLE heads (id int PRIMARY KEY); CREATE TABLE lines (id int PRIMARY KEY, head int, alt int)")
    db.execute("ALTER TABLE lines ADD FOREIGN KEY (head) REFERENCES heads ON DELETE CASCADE ON UPDATE CASCADE")
    db.execute("ALTER TABLE lines ADD FOREIGN KEY (alt) REFERENCES heads ON DELETE SET NULL")
    follower = following(url, tmp_path, way, "heads", "lines")
    with db.cursor() as cursor:
        for table, rows in (("heads", "1\n2\n3\n"), ("lines", "1\t1\t3\n2\t2\t3\n3\t2\t\\N\n")):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(rows)
    db.execute("DELETE FROM heads WHERE id = 3; UPDATE heads SET id = 20 WHERE id = 2; DELETE FROM heads WHERE id = 1")
    follower.land()
    for table in ("heads", "lines"):
        assert follower.rows(table) == truth(db, table)
    db.execute("INSERT INTO heads VALUES (7); INSERT INTO lines VALUES (7, 7, 7)")
    db.execute("BEGIN; TRUNCATE heads CASCADE; INSERT INTO heads VALUES (8); COMMIT")  # of lines, too
    follower.land()
    for table in ("heads", "lines"):
        assert follower.rows(table) == truth(db, table)
    follower.capture().remove()


def test_of_tables_that_inherit_the_named_ones_are_captured(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    """From the log; triggers refuse them."""
    db.execute("CREATE TABLE base (id int PRIMARY KEY, v text); CREATE TABLE child (w int) INHERITS (base)")
    db.execute("CREATE TABLE other (x int) INHERITS (base); ALTER TABLE child ADD PRIMARY KEY (id)")
    db.execute("INSERT INTO base VALUES (1, 'b'); INSERT INTO child VALUES (2, 'c', 0); INSERT INTO other VALUES (3)")
    follower = following(url, tmp_path, PostgresCapture, "base", "child")
    for statement in (
        "UPDATE base SET v = v || '!'",
        "INSERT INTO child VALUES (4, 'd', 1); INSERT INTO base VALUES (4, 'd')",
        "DELETE FROM base WHERE id = 4; UPDATE base SET id = id + 10",
        "TRUNCATE ONLY base",
        "INSERT INTO base VALUES (7, 'e'); TRUNCATE base",
    ):
        db.execute(statement)
        follower.land()
        for table in ("base", "child"):
            assert follower.rows(table) == truth(db, f"ONLY {table}"), statement
    follower.capture().remove()


@WAYS
def test_generated_columns_that_are_left_out_are_told(
    url: str, db: psycopg.Connection, tmp_path: Path, way: Way
) -> None:
    sent = db.info.server_version >= STORED_GENERATED
    kind = "VIRTUAL" if sent else "STORED"
    db.execute(f"CREATE TABLE t (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) {kind})")
    db.execute("INSERT INTO t VALUES (1, 2)")
    capture = "wal" if way is PostgresCapture else "trigger"
    findings = [c.finding for c in check(url, [("public", "t")], capture=capture) if c.ok]
    assert any("has no twice" in finding for finding in findings)
    follower = Follower(url, tmp_path, "t", way=way)
    landing = follower.capture().begin()
    follower._take(landing)
    assert ["has no twice" in notice for notice in landing.notices] == [True]
    db.execute("UPDATE t SET n = 7; INSERT INTO t VALUES (2, NULL)")
    assert not any(landing.notices for landing in follower.land())
    assert follower.rows("t") == truth(db, "(SELECT id, n FROM t) AS s")
    follower.capture().remove()


NAMES = (
    "a b",
    "c.d",
    "e`f",
    'g"h',
    "ü",
    "100%",
    "%s",
    "{}",
    "$1",
    "it's",
    "i;j",
    "tab\t",
    "select",
    "op",
    "xid",
    "moment",
)
NAMES += ("new_rows", "missing", "r", "c0", "whole", "x" * 63)


@WAYS
def test_odd_names_of_columns(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    """Those that SQL, drivers and what captures them would take for something else."""
    columns = [sql.SQL("{} text").format(sql.Identifier(name)) for name in NAMES]
    db.execute(
        sql.SQL("CREATE TABLE t ({} int PRIMARY KEY, {})").format(sql.Identifier("i d"), sql.SQL(", ").join(columns))
    )
    places = ", ".join(["%s"] * len(NAMES))
    db.execute(f"INSERT INTO t VALUES (1, {places}), (2, {places})", [*NAMES, *NAMES])
    follower = following(url, tmp_path, way, "t")
    db.execute(f"INSERT INTO t VALUES (3, {places})", NAMES)
    for name in NAMES:
        db.execute(sql.SQL("UPDATE t SET {} = 'x' WHERE \"i d\" > 1").format(sql.Identifier(name)))
    db.execute('DELETE FROM t WHERE "i d" = 2')
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


@WAYS
def test_a_schema_that_is_renamed(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    follower = following(url, tmp_path, way, "t")
    db.execute("INSERT INTO t VALUES (2)")
    db.execute("ALTER SCHEMA public RENAME TO former; CREATE SCHEMA public; CREATE TABLE public.t (id int PRIMARY KEY)")
    db.execute("INSERT INTO former.t VALUES (3); INSERT INTO public.t VALUES (77)")
    assert not any(t.replaced for landing in follower.land() for t in landing.tables)
    assert follower.rows("t") == truth(db, "former.t")
    follower.capture().remove()


def test_what_somebody_adds_to_the_publication_is_taken_out(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE strange (id int PRIMARY KEY)")
    follower = following(url, tmp_path, PostgresCapture, "t")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute(f"ALTER PUBLICATION {follower.slot} ADD TABLE strange; INSERT INTO strange VALUES (1)")
    db.execute("INSERT INTO t VALUES (2)")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    held = "SELECT string_agg(tablename, ',') FROM pg_publication_tables WHERE pubname = %s"
    assert db.execute(held, (follower.slot,)).fetchone() == ("t",)
    follower.capture().remove()


def test_without_an_identity_rows_come_and_the_table_is_emptied(
    url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    """From the log; nothing else can happen to such a table while it is published."""
    db.execute("CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY NOTHING")
    db.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x')")
    follower = following(url, tmp_path, PostgresCapture, "t")
    for statement in (
        "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
        "BEGIN; INSERT INTO t VALUES (3, 'gone'); TRUNCATE t; INSERT INTO t VALUES (4, 'a'), (4, 'a'); COMMIT",
        "INSERT INTO t SELECT 4, 'a' FROM generate_series(1, 3)",
    ):
        db.execute(statement)
        follower.land()
        assert follower.rows("t") == truth(db, "t"), statement
    for statement in ("UPDATE t SET a = 1", "DELETE FROM t"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="replica identity"):
            db.execute(statement)
    follower.capture().remove()


@WAYS
def test_row_security_hides_nothing(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    """A role from whom policies would hide rows is refused, with what helps; everybody else's rows are captured."""
    role, capture = f"seer_{db.info.dbname}", "wal" if way is PostgresCapture else "trigger"
    db.execute(f"CREATE ROLE {role} LOGIN REPLICATION; CREATE ROLE other_{role}")
    db.execute(f"GRANT CREATE ON DATABASE {db.info.dbname} TO {role}")
    db.execute("CREATE TABLE t (id int PRIMARY KEY, whose text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    db.execute(f"ALTER TABLE t OWNER TO {role}; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    db.execute("CREATE POLICY own ON t USING (whose = current_user); ALTER TABLE t FORCE ROW LEVEL SECURITY")
    theirs = url.replace("postgres@", f"{role}@")
    with pytest.raises(UserError, match=f'ALTER ROLE "{role}" BYPASSRLS') as caught:
        following(theirs, tmp_path, way, "t")
    assert caught.value.code == "SOURCE_NOT_READY"
    db.execute(f"ALTER ROLE {role} BYPASSRLS")
    assert all(c.ok for c in check(theirs, [("public", "t")], capture=capture))
    follower = following(theirs, tmp_path, way, "t")
    db.execute(f"GRANT ALL ON t TO other_{role}; SET ROLE other_{role}")
    db.execute("INSERT INTO t VALUES (3, current_user); UPDATE t SET id = 30")
    db.execute("RESET ROLE; UPDATE t SET id = id + 100 WHERE whose = 'a'; DELETE FROM t WHERE whose = 'b'")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()
