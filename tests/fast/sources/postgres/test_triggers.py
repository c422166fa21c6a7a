"""Capture by triggers on a real server: what transactions, statements and tables can do, and what people do to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, check_taken_anew, truth
from kit.one_statement import parse_statement

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.health.server_health import check, health
from headrace.sources.postgres.server import STORED_GENERATED
from headrace.sources.postgres.setup.open_capture import options_of
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.triggers import install_triggers
from headrace.sources.postgres.triggers.change_tables import suffix_of
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.statements.parsed_statements import CreateSource

SCHEMA = "headrace_f"


def following(url: str, folder: Path, *tables: str, **options: object) -> Follower:
    follower = Follower(url, folder / "spool", *tables, way=TriggerCapture, **options)  # type: ignore[arg-type]
    follower.begin()
    return follower


@pytest.fixture
def orders(url: str, db: psycopg.Connection, tmp_path: Path) -> Follower:
    """A table that is captured, and another one beside it."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount bigint)")
    db.execute("CREATE TABLE beside (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders VALUES (1, 'EU', 30), (2, NULL, 50)")
    return following(url, tmp_path, "orders", "beside")


def waiting(db: psycopg.Connection, table: str) -> int:
    row = db.execute(f"SELECT count(*) FROM {SCHEMA}.t_{suffix_of('public', table)}").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(
    ("clause", "way"), [("", None), ("WITH (capture = 'trigger')", "trigger"), ("WITH (capture = auto)", "auto")]
)
def test_the_statement_says_how(clause: str, way: str | None) -> None:
    statement = parse_statement(f"CREATE SOURCE shop FROM POSTGRES 'postgresql://db/shop' TABLES (orders) {clause}")
    assert isinstance(statement, CreateSource)
    assert statement.request.options.get("capture") == way


def test_a_way_that_does_not_exist_is_told() -> None:
    with pytest.raises(UserError, match="no property slot"):
        parse_statement("CREATE SOURCE shop FROM POSTGRES 'postgresql://db' TABLES (orders) WITH (slot = 'x')")
    with pytest.raises(UserError, match="INVALID_OPTION"):
        options_of("shop", "postgresql://db/shop", {"orders": ("public", "orders")}, capture="magic")
    parts = {"orders": Part(where="id > 1")}
    with pytest.raises(UserError, match="INVALID_OPTION"):
        options_of("shop", "postgresql://db/shop", {"orders": ("public", "orders")}, parts=parts, capture="auto")


# ---- transactions


def test_a_long_transaction_delays_nothing_but_its_own_rows(orders: Follower, url: str, db: psycopg.Connection) -> None:
    with psycopg.connect(url) as long:
        long.execute("INSERT INTO orders VALUES (100, 'long', 1)")
        for turn in range(3):
            db.execute("INSERT INTO orders VALUES (%s, 'short', 2)", (turn + 10,))
            before = truth(db, "orders")
            orders.land()
            assert orders.rows("orders") == before
            long.execute("UPDATE orders SET amount = amount + 1 WHERE id = 100")
        assert waiting(db, "orders") == 0, "what is landed is deleted, and what is open is not seen"
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


def test_a_transaction_that_began_first_and_commits_last_is_landed(
    orders: Follower, url: str, db: psycopg.Connection
) -> None:
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        first.execute("INSERT INTO orders VALUES (100, 'first', 1)")
        second.execute("INSERT INTO orders VALUES (200, 'second', 1)")
        second.commit()
        orders.land()
        second.execute("UPDATE orders SET amount = 2 WHERE id = 200")
        first.execute("DELETE FROM orders WHERE id = 1")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


def test_savepoints_and_rollbacks_leave_what_was_kept(orders: Follower, db: psycopg.Connection) -> None:
    with db.transaction():
        db.execute("INSERT INTO orders VALUES (3, 'kept', 1)")
        with db.transaction(force_rollback=True):
            db.execute("DELETE FROM orders; INSERT INTO orders VALUES (4, 'gone', 1)")
        with db.transaction():
            db.execute("UPDATE orders SET id = id + 10")
    with db.transaction(force_rollback=True):
        db.execute("TRUNCATE orders")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


def test_prepared_transactions_are_landed_when_they_are_committed(
    orders: Follower, db: psycopg.Connection, server: LogicalServer, url: str
) -> None:
    for name in ("kept", "gone"):
        db.execute(f"BEGIN; INSERT INTO orders VALUES ({len(name) + ord(name[0])}, '{name}', 1)")
        db.execute(f"PREPARE TRANSACTION '{name}'")
    db.execute("UPDATE orders SET amount = 7")
    orders.land()
    server.restart("immediate")
    with psycopg.connect(url, autocommit=True) as again:
        assert orders.rows("orders") == truth(again, "orders")
        again.execute("COMMIT PREPARED 'kept'")
        again.execute("ROLLBACK PREPARED 'gone'")
        orders.land()
        assert orders.rows("orders") == truth(again, "orders")


def test_what_is_landed_survives_a_crash_although_its_commit_did_not_wait(
    orders: Follower, db: psycopg.Connection, server: LogicalServer, url: str
) -> None:
    db.execute("SET synchronous_commit = off; INSERT INTO orders VALUES (5, 'async', 1)")
    capture = orders.capture()
    landing = capture.land(orders.position)
    server.restart("immediate")
    orders._take(landing)
    with psycopg.connect(url, autocommit=True) as again:
        assert orders.rows("orders") == truth(again, "orders")
        again.execute("INSERT INTO orders VALUES (6, 'next', 1)")
        orders.land()
        assert orders.rows("orders") == truth(again, "orders")


def test_a_crash_between_landing_and_deleting_doubles_nothing(orders: Follower, db: psycopg.Connection) -> None:
    for turn in range(3):
        db.execute(f"INSERT INTO orders VALUES ({turn + 10}, 'x', 1); UPDATE orders SET amount = amount + 1")
        orders._take(orders.capture().land(orders.position))  # and no acknowledgement
        assert orders.rows("orders") == truth(db, "orders")
    assert waiting(db, "orders") > 0
    assert not any(landing.tables for landing in orders.land())
    db.execute("DELETE FROM orders WHERE id = 1")
    orders.land()
    assert (waiting(db, "orders"), orders.rows("orders")) == (0, truth(db, "orders"))


# ---- statements


def test_a_truncate_that_looks_at_an_old_snapshot(orders: Follower, url: str, db: psycopg.Connection) -> None:
    """TRUNCATE takes rows that its own transaction cannot see."""
    with psycopg.connect(url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        db.execute("INSERT INTO orders VALUES (50, 'unseen', 1)")
        old.execute("TRUNCATE orders")
        old.execute("INSERT INTO orders VALUES (51, 'after', 1)")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders") == Counter([(51, "after", 1)])


# ---- tables


def test_tables_without_a_key_keep_equal_rows_apart(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE bag (x int, y text); INSERT INTO bag SELECT g % 2, 'v' FROM generate_series(1, 9) g")
    follower = following(url, tmp_path, "bag")
    db.execute("INSERT INTO bag VALUES (1, 'v'), (1, 'v'), (NULL, NULL)")
    db.execute("DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE x = 0 LIMIT 3)")
    db.execute("UPDATE bag SET y = 'w' WHERE ctid IN (SELECT ctid FROM bag WHERE x = 1 LIMIT 2)")
    follower.land()
    assert follower.rows("bag") == truth(db, "bag")


def test_partitions_are_captured_under_their_own_names_too(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE parted (id int PRIMARY KEY, b text) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)")
    db.execute("CREATE TABLE high (b text, gone int, id int NOT NULL PRIMARY KEY); ALTER TABLE high DROP gone")
    db.execute("ALTER TABLE parted ATTACH PARTITION high FOR VALUES FROM (10) TO (20)")
    db.execute("INSERT INTO parted SELECT g, 'p' FROM generate_series(1, 15) g")
    follower = following(url, tmp_path, "parted")
    for statement in (
        "UPDATE parted SET id = id + 4 WHERE id BETWEEN 6 AND 8 AND false OR id = 15",
        "UPDATE high SET b = 'direct' WHERE id < 13; DELETE FROM low WHERE id = 1",
        "UPDATE parted SET id = 16, b = 'moved' WHERE id = 2",
        "INSERT INTO parted VALUES (3, 'x'), (17, 'y') ON CONFLICT (id) DO UPDATE SET b = excluded.b",
        "TRUNCATE low",
        "ALTER TABLE parted DETACH PARTITION high",
        "INSERT INTO high VALUES ('detached', 18)",
        "CREATE TABLE middle PARTITION OF parted FOR VALUES FROM (30) TO (40); INSERT INTO middle VALUES (31, 'm')",
        "INSERT INTO middle VALUES (32, 'm')",
        "TRUNCATE parted",
        "DROP TABLE middle",
    ):
        db.execute(statement)
        follower.land()
        assert follower.rows("parted") == truth(db, "parted"), statement
    left = db.execute("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'high'::regclass").fetchone()
    assert left == (0,)


def test_values_of_all_kinds_come_as_they_are(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 10)")
    db.execute("CREATE TYPE pair AS (at date, m mood); CREATE DOMAIN smalls AS small[]")
    columns = (
        "id int, m mood, ms mood[], s small, ss smalls, p pair, n numeric, v varchar(3), b bit(3), vb varbit, "
        'c char(4), one "char", mo money, j jsonb, u uuid, iv interval, d date, t text, "a b" text, f float8, '
        "fs float4[], ts timestamptz, by bytea, nm name"
    )
    if db.info.server_version >= STORED_GENERATED:  # before, mirrors do not have them
        columns += ", g int GENERATED ALWAYS AS (id * 2) STORED"
    db.execute(f"CREATE TABLE every ({columns})")
    listed = db.execute("SELECT attname FROM pg_attribute WHERE attrelid = 'every'::regclass AND attnum > 0").fetchall()
    as_text = tuple(f"public.every.{name}" for (name,) in listed)
    follower = following(url, tmp_path, "every", as_text=as_text)
    names = 'id, m, ms, s, ss, p, n, v, b, vb, c, one, mo, j, u, iv, d, t, "a b", f, fs, ts, by, nm'
    values = (
        "1, 'sad', '{ok,NULL}', 3, '{1,2}', '(2026-02-01,ok)', 1.500, 'abc', B'101', B'10', 'ab', 'q', 12.5, "
        "'{\"k\": 1}', '00000000-0000-0000-0000-000000000001', '1 day 2 hours', '2026-02-01', E'a\\n\"b,', '', "
        "0.1, '{0.1,NaN}', '2026-01-01 10:00+02', '\\x00ff', 'n'"
    )
    db.execute("SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'; SET intervalstyle = 'iso_8601'")
    db.execute("SET bytea_output = 'escape'; SET extra_float_digits = -5")
    db.execute(f"INSERT INTO every ({names}) VALUES ({values}); INSERT INTO every (id) VALUES (2)")
    follower.land()
    landed = follower.rows("every")
    fresh = following(url, tmp_path / "again", "every", slot="headrace_g", as_text=as_text)
    assert landed == fresh.rows("every")
    db.execute("DELETE FROM every")  # what goes must be written as what came
    follower.land()
    assert not follower.rows("every")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders ADD COLUMN extra bigint DEFAULT 7; INSERT INTO orders VALUES (3, 'x', 1, 8)",
        "ALTER TABLE orders DROP COLUMN region; UPDATE orders SET amount = 1 WHERE id = 1",
        "ALTER TABLE orders RENAME COLUMN region TO place; UPDATE orders SET place = 'x'",
        "ALTER TABLE orders RENAME COLUMN region TO place; DELETE FROM orders; "
        "ALTER TABLE orders RENAME place TO region",
        "ALTER TABLE orders ALTER COLUMN amount TYPE bigint USING amount * 2",
        "ALTER TABLE orders ALTER COLUMN amount TYPE text; INSERT INTO orders VALUES (3, 'x', 'y')",
        "ALTER TABLE orders ALTER COLUMN amount TYPE int; INSERT INTO orders VALUES (3, 'x', 7)",
        "ALTER TABLE orders ALTER COLUMN region TYPE int[] USING NULL; INSERT INTO orders VALUES (3, '{1}', 7); "
        "ALTER TABLE orders ALTER COLUMN region TYPE uuid USING NULL",
        "ALTER TABLE orders DROP CONSTRAINT orders_pkey; ALTER TABLE orders ADD PRIMARY KEY (amount); "
        "UPDATE orders SET id = 9",
        "INSERT INTO orders VALUES (3, 'x', 1); DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY); "
        "INSERT INTO orders VALUES (77)",
    ],
    ids=["add", "drop", "rename", "and back", "using", "type", "narrower", "array", "key", "recreate"],
)
def test_altered_tables_go_on_and_are_taken_anew_at_one_cut(
    orders: Follower, db: psycopg.Connection, change: str
) -> None:
    check_taken_anew(orders, db, change)


def test_a_renamed_table_is_followed_and_a_dropped_one_keeps_its_rows(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE SCHEMA moved; ALTER TABLE orders SET SCHEMA moved; ALTER TABLE moved.orders RENAME TO sales")
    db.execute("UPDATE moved.sales SET amount = 0")
    (landing,) = orders.land()
    assert not any(t.replaced for t in landing.tables)
    assert [("public.orders" in n, "moved.sales" in n) for n in landing.notices] == [(True, True)]
    assert not [n for again in orders.land() for n in again.notices]
    assert orders.rows("orders") == truth(db, "moved.sales")
    db.execute("DROP TABLE moved.sales; INSERT INTO beside VALUES (1)")
    orders.land()
    assert {n.table for n in orders.gone} == {"orders"}
    assert (len(orders.rows("orders")), orders.rows("beside")) == (2, truth(db, "beside"))


# ---- people


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ALTER TABLE orders DISABLE TRIGGER ALL; DELETE FROM orders", "headrace_f_. of public.orders was disabled."),
        (
            "ALTER TABLE orders DISABLE TRIGGER USER; DELETE FROM orders; ALTER TABLE orders ENABLE TRIGGER USER",
            "headrace_f_. of public.orders was (disabled for a while|set to fire)",
        ),
        ("DROP TRIGGER headrace_f_u ON orders; UPDATE orders SET amount = 0", "trigger headrace_f_u of .* was dropped"),
        ("DROP FUNCTION {schema}.d_{suffix} CASCADE; DELETE FROM orders", "trigger headrace_f_d of .* was dropped"),
        ("ALTER FUNCTION {schema}.d_{suffix} RESET ALL", "function of the trigger headrace_f_d of .* was replaced"),
        ("INSERT INTO orders VALUES (9, 'x', 1); TRUNCATE {schema}.t_{suffix}", "t_{suffix} was emptied or rewritten"),
        (
            "INSERT INTO orders VALUES (9, 'x', 1); DROP FUNCTION {schema}.i_{suffix}, {schema}.u_{suffix}, "
            "{schema}.d_{suffix}, {schema}.x_{suffix} CASCADE; DROP TABLE {schema}.t_{suffix}",
            "change table {schema}.t_{suffix} of public.orders was dropped",
        ),
        ("DROP SCHEMA {schema} CASCADE; DELETE FROM orders", "schema {schema}, .* was dropped"),
        (
            "INSERT INTO orders VALUES (9, 'x', 1), (10, 'x', 1); DELETE FROM {schema}.t_{suffix} WHERE c0 = 9; "
            "UPDATE orders SET amount = 0",
            "deleted or updated changes of public.orders",
        ),
        ("DELETE FROM orders WHERE id = 2; UPDATE {schema}.t_{suffix} SET op = 1", "updated changes of public.orders"),
    ],
    ids=[
        *("disabled", "and enabled", "trigger", "function", "altered", "emptied", "dropped", "all"),
        *("row deleted", "row updated"),
    ],
)
def test_capture_that_was_tampered_with_is_noticed_and_a_new_snapshot_cures(
    orders: Follower, db: psycopg.Connection, change: str, told: str
) -> None:
    names = {"schema": SCHEMA, "suffix": suffix_of("public", "orders")}
    for statement in change.format(**names).split("; "):
        db.execute(statement)
    with pytest.raises(UserError, match="CAPTURE_REMOVED.*" + told.format(**names)):
        orders.land()
    orders.begin()
    db.execute("INSERT INTO orders VALUES (11, 'after', 1)")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


@pytest.mark.parametrize("change", [{"system": "1"}, {"timeline": 9}, {"snapshot": "1:9999999999:"}])
def test_another_server_is_noticed(orders: Follower, change: dict[str, object]) -> None:
    orders.position = {**orders.position, **change}
    with pytest.raises(UserError, match="SOURCE_CHANGED"):
        orders.land()


def test_two_projects_capture_one_table_and_nothing_is_left_behind(
    orders: Follower, url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    second = following(url, tmp_path / "second", "orders", slot="headrace_second")
    db.execute("UPDATE orders SET amount = amount + 1")
    for follower in (orders, second):
        follower.land()
        assert follower.rows("orders") == truth(db, "orders")
    for follower in (orders, second):
        follower.capture().remove()
    left = (
        "SELECT (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal), (SELECT count(*) FROM pg_namespace "
        "WHERE nspname LIKE 'headrace%'), (SELECT count(*) FROM pg_proc WHERE proname LIKE 'keep%')"
    )
    assert db.execute(left).fetchone() == (0, 0, 0)


def test_tables_come_and_go(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE later (id int); CREATE VIEW seen AS SELECT 1 AS a; INSERT INTO later VALUES (1), (1)")
    names = dict(orders.names)
    with pytest.raises(UserError, match="a view"):
        orders.renew("seen")
    orders.names = dict(names)
    orders.renew("later")
    db.execute("DELETE FROM later; INSERT INTO later VALUES (2), (2); UPDATE orders SET amount = 0")
    orders.land()
    assert (orders.rows("later"), orders.rows("orders")) == (truth(db, "later"), truth(db, "orders"))
    orders.names = names
    orders.mirrors.tables.pop(next(n for n in orders.mirrors.tables if n.table == "later"))
    orders.capture().tidy()
    assert db.execute("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'later'::regclass").fetchone() == (0,)
    db.execute("DELETE FROM orders; DELETE FROM later")
    orders.land()
    assert not orders.rows("orders")


def test_a_snapshot_that_fails_stops_nothing(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("UPDATE orders SET amount = 8")
    orders.capture().renew(orders.position, [n for n in orders.names if n.table == "orders"])  # and nobody publishes it
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


def test_a_publication_of_all_tables_does_not_keep_landed_rows(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE PUBLICATION everything FOR ALL TABLES; ALTER TABLE orders REPLICA IDENTITY FULL")
    db.execute("UPDATE orders SET amount = 0; TRUNCATE beside")
    orders.land()
    assert (orders.rows("orders"), waiting(db, "orders")) == (truth(db, "orders"), 0)
    assert db.execute(f"SELECT count(*) FROM {SCHEMA}.emptied").fetchone() == (0,)


def test_health_tells_what_waits(orders: Follower, db: psycopg.Connection) -> None:
    options = {"url": orders.url, "slot": orders.slot, "capture": "trigger"}
    db.execute("UPDATE orders SET amount = 0")
    found = health(options, orders.position)
    assert (found.waiting, found.slot) == (4, None)
    assert found.kept
    orders.land()
    assert health(options, orders.position).waiting == 0
    orders.capture().remove()
    assert health(options, orders.position).kept is None


def test_whoever_writes_for_long_keeps_nobody_waiting(
    url: str, db: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_triggers, "PATIENCE_SECONDS", 1.0)
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    follower = Follower(url, tmp_path / "spool", "t", way=TriggerCapture)
    with psycopg.connect(url) as long:
        long.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(EnvironmentFault, match="SOURCE_BUSY"):
            follower.begin()
        db.execute("SET lock_timeout = '10s'; INSERT INTO t VALUES (2)")
    follower.begin()
    assert follower.rows("t") == truth(db, "t")


class ToldLate(psycopg.Connection):
    """Its first transaction is told of a lock's time-out when it ends, as a server may: then it has not ended.

    Against a table that is locked for milliseconds, with a `lock_timeout` of one, this happens once in some thousand
    time-outs.
    """

    told = False

    @contextmanager
    def transaction(self, *args: Any, **kwargs: Any) -> Iterator[psycopg.Transaction]:
        if self.told:
            with super().transaction(*args, **kwargs) as transaction:
                yield transaction
            return
        self.told = True
        self.execute("BEGIN")
        yield psycopg.Transaction(self)
        raise psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")


def test_a_time_out_that_is_told_late_is_followed_by_another_attempt(url: str) -> None:
    with ToldLate.connect(url, autocommit=True) as connection:
        install_triggers.patiently(connection, lambda: connection.execute("CREATE TABLE t (id int)"))
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_what_triggers_cannot_follow_is_told(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE base (a int); CREATE TABLE child () INHERITS (base); CREATE UNLOGGED TABLE fast (a int)")
    db.execute("CREATE TABLE parted (a int) PARTITION BY LIST (a); CREATE TABLE part PARTITION OF parted DEFAULT")
    db.execute("CREATE TABLE keyless (a int); CREATE VIEW seen AS SELECT 1 AS a")
    names = [("public", t) for t in ("base", "child", "fast", "part", "seen", "missing", "keyless", "parted")]
    found = {c.name: c for c in check(url, names, capture="trigger") if not c.ok}
    assert found.keys() == {f"public.{t}" for t in ("base", "child", "fast", "part", "seen", "missing")}
    assert "inherit" in found["public.base"].finding
    assert "trigger" in found["public.fast"].finding, "the log has nothing to do with it"
    both = check(url, [("public", "keyless")], capture="auto")
    assert all(c.ok for c in both)
    (later,) = (c for c in both if "the log, not yet" in c.finding)
    assert "REPLICA IDENTITY FULL" in later.finding


def test_a_role_without_privileges_is_told_and_one_with_the_least_can_capture(
    url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    role = f"catcher_{url.partition('?')[0].rpartition('/')[2]}"
    db.execute(f"CREATE ROLE {role} LOGIN; CREATE ROLE {role}_writer LOGIN")
    db.execute("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); INSERT INTO t SELECT WHERE false")
    db.execute(f"CREATE TABLE p PARTITION OF t DEFAULT; GRANT INSERT ON t TO {role}_writer; INSERT INTO t VALUES (1)")
    theirs = url.replace("postgres@", f"{role}@")
    with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
        following(theirs, tmp_path, "t")
    for line in (caught.value.hint or "").splitlines()[1:]:
        db.execute(line)
    follower = following(theirs, tmp_path, "t")
    with psycopg.connect(url.replace("postgres@", f"{role}_writer@")) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute(f"SELECT * FROM {SCHEMA}.emptied")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()
    assert db.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").fetchone() == (0,)
