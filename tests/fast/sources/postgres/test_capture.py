"""Capture on a real server: altered tables, lost slots, missing privileges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, check_taken_anew, truth
from kit.pg_child import Way

from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.sources.postgres.citus.node_log import NodeLog
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.health.server_health import check, health
from headrace.sources.postgres.remote_tables import to_json
from headrace.sources.postgres.server import settled
from headrace.sources.postgres.setup.open_capture import limit_after, open_capture, options_of
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.pgoutput_columns import Bytes
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture


@pytest.fixture
def orders(url: str, db: psycopg.Connection, tmp_path: Path) -> Iterator[Follower]:
    """A table that is captured, and another one beside it."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount bigint)")
    db.execute("CREATE TABLE beside (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders VALUES (1, 'EU', 30), (2, NULL, 50)")
    follower = Follower(url, tmp_path / "spool", "orders", "beside")
    follower.begin()
    yield follower
    follower.capture().remove()


# ---- tables that change


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders ADD COLUMN extra bigint DEFAULT 7; INSERT INTO orders VALUES (3, 'x', 1, 8)",
        "ALTER TABLE orders ALTER COLUMN amount TYPE bigint USING amount * 2",
        "ALTER TABLE orders ALTER COLUMN amount TYPE text; INSERT INTO orders VALUES (3, 'x', 'y')",
        "ALTER TABLE orders REPLICA IDENTITY FULL; UPDATE orders SET region = 'x'; DELETE FROM orders WHERE id = 2",
        "ALTER TABLE orders DROP CONSTRAINT orders_pkey; ALTER TABLE orders ADD PRIMARY KEY (amount); "
        "UPDATE orders SET id = 9",
        "INSERT INTO orders VALUES (3, 'x', 1); DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY); "
        "INSERT INTO orders VALUES (77)",
    ],
    ids=["add", "using", "type", "identity", "key", "recreate"],
)
def test_altered_tables_are_taken_anew_at_one_cut(orders: Follower, db: psycopg.Connection, change: str) -> None:
    check_taken_anew(orders, db, change)


def test_a_renamed_table_is_followed(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE SCHEMA moved; ALTER TABLE orders SET SCHEMA moved; ALTER TABLE moved.orders RENAME TO sales")
    db.execute("UPDATE moved.sales SET amount = 0")
    assert not any(t.replaced for landing in orders.land() for t in landing.tables)
    assert orders.rows("orders") == truth(db, "moved.sales")


@pytest.mark.parametrize(
    ("rename", "name", "replaced"),
    [
        ("ALTER TABLE terms RENAME TO deals", "deals", []),
        ("CREATE SCHEMA moved; ALTER TABLE terms SET SCHEMA moved", "moved.terms", []),
        ("ALTER TABLE terms RENAME COLUMN until TO ends", "terms", []),
        ("ALTER TABLE terms RENAME COLUMN until TO ends; ALTER TABLE terms ALTER id TYPE bigint", "terms", ["terms"]),
    ],
    ids=["table", "schema", "column", "column and type"],
)
def test_what_is_kept_as_text_stays_text_under_another_name(
    url: str, db: psycopg.Connection, tmp_path: Path, rename: str, name: str, replaced: list[str]
) -> None:
    db.execute("CREATE TABLE terms (id int PRIMARY KEY, until date); INSERT INTO terms VALUES (1, 'infinity')")
    follower = Follower(url, tmp_path / "spool", "terms", as_text=("public.terms.until",))
    follower.begin()
    db.execute(rename)
    db.execute(f"INSERT INTO {name} VALUES (2, '2026-01-01')")
    assert [t.name.table for landing in follower.land() for t in landing.tables if t.replaced] == replaced
    assert follower.rows("terms") == Counter([(1, "infinity"), (2, "2026-01-01")])
    follower.capture().remove()


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("mood", "sad"),
        ("felt", "sad"),
        ("pair", "(1,sad)"),
        ("many", "({sad})"),
        ("moods", "[sad,ok]"),
        ("multimoods", "{[sad,ok]}"),
    ],
)
def test_a_renamed_value_of_an_enum_is_followed(
    url: str, db: psycopg.Connection, tmp_path: Path, type_: str, value: str, way: Way
) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN felt AS mood")
    db.execute("CREATE TYPE pair AS (a int, b mood); CREATE TYPE many AS (a mood[])")
    db.execute("CREATE TYPE moods AS RANGE (subtype = mood, multirange_type_name = multimoods)")
    db.execute(f"CREATE TABLE people (id int PRIMARY KEY, m {type_}); INSERT INTO people VALUES (1, '{value}')")
    follower = Follower(url, tmp_path / "spool", "people", way=way)
    follower.begin()
    db.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    follower.land()
    assert follower.rows("people") == Counter([(1, value.replace("sad", "blue"))])
    assert not any(landing.tables for landing in follower.land())
    follower.capture().remove()


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("type_", ["pair", "pairs", "pair[]"])
def test_attributes_of_a_composite_type_come_and_go(
    url: str, db: psycopg.Connection, tmp_path: Path, type_: str, way: Way
) -> None:
    """No row is written for it, and every row reads otherwise."""
    db.execute("CREATE TYPE pair AS (a int, b text); CREATE TYPE pairs AS (p pair, ps pair[])")
    db.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {type_}); ALTER TABLE t REPLICA IDENTITY FULL")
    value = {"pair": "(1,x)", "pairs": '("(1,x)","{""(2,y)""}")', "pair[]": '{"(1,x)","(2,y)"}'}[type_]
    db.execute("INSERT INTO t VALUES (1, %s), (2, NULL)", (value,))
    follower = Follower(url, tmp_path, "t", as_text=("public.t.v",), way=way)
    follower.begin()
    for change in ("ADD ATTRIBUTE c int", "DROP ATTRIBUTE a", "RENAME ATTRIBUTE b TO bb"):
        db.execute(f"ALTER TYPE pair {change} CASCADE; UPDATE t SET id = id + 10")
        follower.land()
        assert follower.rows("t") == truth(db, "(SELECT id, v::text FROM t) AS s"), change
    assert not any(landing.tables for landing in follower.land())
    follower.capture().remove()


def test_a_dropped_table_leaves_its_last_rows(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO beside VALUES (1)")
    db.execute("DROP TABLE orders; INSERT INTO beside VALUES (2)")
    orders.land()
    assert {n.table for n in orders.gone} == {"orders"}
    assert len(orders.rows("orders")) == 2
    db.execute("INSERT INTO beside VALUES (3)")
    orders.land()
    assert orders.rows("beside") == truth(db, "beside")
    db.execute("DROP TABLE beside")
    orders.land()
    assert {n.table for n in orders.gone} == {"orders", "beside"}
    assert len(orders.rows("beside")) == 3
    orders.land()


def test_partitions_come_and_go(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE parted (id int PRIMARY KEY, b text) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)")
    db.execute("CREATE TABLE high (b text, id int NOT NULL PRIMARY KEY)")
    db.execute("INSERT INTO parted SELECT g, 'p' FROM generate_series(1, 5) g; INSERT INTO high VALUES ('h', 15)")
    follower = Follower(url, tmp_path / "spool", "parted")
    follower.begin()
    for statement in (
        "ALTER TABLE parted ATTACH PARTITION high FOR VALUES FROM (10) TO (20)",
        "UPDATE parted SET id = id + 9 WHERE id = 5",
        "TRUNCATE low",
        "ALTER TABLE parted DETACH PARTITION high",
    ):
        db.execute(statement)
        follower.land()
        assert follower.rows("parted") == truth(db, "parted"), statement
    follower.capture().remove()


def test_a_key_that_may_exist_twice_for_a_while_is_no_key(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE later (id int PRIMARY KEY DEFERRABLE); ALTER TABLE later REPLICA IDENTITY FULL")
    db.execute("CREATE TABLE now (id int PRIMARY KEY); ALTER TABLE now REPLICA IDENTITY FULL")
    db.execute("INSERT INTO later SELECT generate_series(1, 10)")
    follower = Follower(url, tmp_path / "spool", "later", "now")
    follower.begin()
    assert {n.table: t.key for n, t in follower.mirrors.tables.items()} == {"later": (), "now": ("id",)}
    db.execute("UPDATE later SET id = id + 1")
    landing = follower.capture(most=4).land(follower.position)
    assert [t.key for t in landing.tables] == [None] * 3  # between two of them a key is there twice
    follower.land()
    assert follower.rows("later") == truth(db, "later")
    follower.capture().remove()


def test_an_identity_that_is_taken_away_is_told(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    with pytest.raises(UserError, match="REPLICA IDENTITY FULL"):
        orders.land()
    db.execute("ALTER TABLE orders REPLICA IDENTITY NOTHING; INSERT INTO orders VALUES (1, 'EU', 30)")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")
    with pytest.raises(psycopg.Error, match="replica identity"):
        db.execute("DELETE FROM orders")


@pytest.mark.parametrize(("size", "rows"), [(9_000_000, 2), (40_000_000, 1)])
def test_large_rows_are_captured(url: str, db: psycopg.Connection, tmp_path: Path, size: int, rows: int) -> None:
    db.execute("CREATE TABLE large (id int PRIMARY KEY, v text)")
    series = f"FROM generate_series(1, {rows}) g"
    db.execute(f"INSERT INTO large SELECT g, repeat('x' || chr(10), %s) {series}", (size // 2,))
    follower = Follower(url, tmp_path / "spool", "large")
    follower.begin()
    db.execute("INSERT INTO large SELECT 3, repeat('y', %s)", (size,))
    follower.land()
    assert follower.rows("large") == truth(db, "large")
    follower.capture().remove()


# ---- slots and servers


def test_a_lost_slot_stops_and_a_new_snapshot_cures(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("SELECT pg_drop_replication_slot(%s)", (orders.slot,))
    db.execute("UPDATE orders SET amount = 0")
    with pytest.raises(UserError, match="SLOT_LOST"):
        orders.land()
    orders.begin()
    assert orders.rows("orders") == truth(db, "orders")


def test_a_slot_that_somebody_moved_is_noticed(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("UPDATE orders SET amount = 0")
    db.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", (orders.slot,))
    with pytest.raises(UserError, match="Somebody else moved"):
        orders.land()


def _up_to_now(orders: Follower) -> None:
    with connected(orders.url) as connection:
        now = settled(connection)
        PostgresCapture(_captured(orders), Spool(str(orders.folder))).up_to(connection, orders.position, now)


def _up_to_a_mark(orders: Follower) -> None:
    """As a node of a cluster is read."""
    with connected(orders.url) as connection:
        row = connection.execute("SELECT pg_logical_emit_message(false, 'headrace', 's:1') - '0/0'").fetchone()
        assert row is not None
        NodeLog(_captured(orders), Spool(str(orders.folder))).read(orders.position, int(str(row[0])), "s:1")


def _captured(orders: Follower) -> Captured:
    return Captured(orders.url, orders.slot, orders.names, known=orders.mirrors.tables, position=orders.position)


@pytest.mark.parametrize(
    "act",
    [Follower.land, lambda orders: orders.renew("beside"), _up_to_now, _up_to_a_mark],
    ids=["land", "renew", "until", "mark"],
)
def test_a_slot_that_is_moved_in_the_moment_before_it_is_read_is_noticed(
    orders: Follower, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, act: Callable[[Follower], object]
) -> None:
    peek, before = slots.peek, orders.rows("orders")

    def late(connection: Connection, slot: str, *said: Any, **more: Any) -> Iterator[Bytes]:
        db.execute("SELECT pg_replication_slot_advance(%s, %s)", (slot, changed))
        yield from peek(connection, slot, *said, **more)

    db.execute("UPDATE orders SET amount = 0")
    changed = db.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()[0]  # type: ignore[index]
    monkeypatch.setattr(slots, "peek", late)
    with pytest.raises(UserError, match="Somebody else moved"):
        act(orders)
    assert orders.rows("orders") == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "ALTER PUBLICATION {} DROP TABLE orders; DELETE FROM orders; ALTER PUBLICATION {} ADD TABLE orders",
            "put back",
        ),
        ("ALTER PUBLICATION {} SET TABLE orders WHERE (id > 5), beside", "another row filter"),
        ("ALTER PUBLICATION {} SET TABLE orders (id, region), beside", "column list"),
        ("ALTER PUBLICATION {} SET (publish = 'insert')", "options of the publication .* were altered"),
        (
            "ALTER PUBLICATION {} SET (publish = 'insert'); DELETE FROM orders; ALTER PUBLICATION {} "
            "SET (publish = 'insert, update, delete, truncate')",
            "for a while",
        ),
        (
            "DROP PUBLICATION {}; INSERT INTO orders VALUES (9); CREATE PUBLICATION {} FOR TABLE orders, beside",
            "made again",
        ),
        ("DROP PUBLICATION {}", "was dropped or renamed"),
        ("ALTER PUBLICATION {} DROP TABLE orders", "public.orders was taken out"),
    ],
    ids=["back", "filter", "columns", "operations", "operations back", "recreated", "dropped", "taken out"],
)
def test_a_publication_that_left_out_changes_is_noticed(
    orders: Follower, db: psycopg.Connection, change: str, told: str
) -> None:
    for statement in change.replace("{}", orders.slot).split("; "):
        db.execute(statement)
    with pytest.raises(UserError, match="CAPTURE_REMOVED.*" + told):
        orders.land()
    orders.begin()
    db.execute("UPDATE orders SET amount = 0; DELETE FROM orders WHERE id = 2")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")


def test_a_table_that_is_taken_anew_is_not_taken_for_removed(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY)")
    orders.land()
    db.execute("INSERT INTO orders VALUES (1); INSERT INTO beside VALUES (1)")
    orders.land()
    assert orders.rows("orders") == truth(db, "orders")
    db.execute(f"ALTER PUBLICATION {orders.slot} DROP TABLE beside; ALTER PUBLICATION {orders.slot} ADD TABLE beside")
    with pytest.raises(UserError, match="CAPTURE_REMOVED"):
        orders.land()


@pytest.mark.parametrize("change", [{"system": "1"}, {"timeline": 9}, {"lsn": 1 << 60}])
def test_another_server_is_noticed(orders: Follower, change: dict[str, object]) -> None:
    orders.position = {**orders.position, **change}
    with pytest.raises(UserError, match="SOURCE_CHANGED"):
        orders.land()


def test_an_idle_source_moves_its_slot(orders: Follower, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE noise AS SELECT g, repeat('x', 100) FROM generate_series(1, 150000) g")
    (landing,) = orders.land()
    assert (landing.tables, landing.keep_position) == ((), True)
    slot = health({"url": orders.url, "slot": orders.slot}, orders.position)
    assert slot.lag is not None
    assert slot.lag < 1 << 20
    assert slot.slot is not None
    assert slot.slot.confirmed == orders.position["lsn"]


def test_the_first_landings_of_a_process_are_small(orders: Follower, db: psycopg.Connection, tmp_path: Path) -> None:
    """So that one which is killed soon has published something."""
    for turn in range(3):
        start = turn * 30_000 + 10
        db.execute(f"INSERT INTO orders SELECT g, 'x', 1 FROM generate_series({start}, {start + 29_999}) g")
    tables = {n.table: of for n, of in orders.names.items()}
    options = {**options_of("f", orders.url, tables), "slot": orders.slot}
    known = {n: to_json(t) for n, t in orders.mirrors.tables.items()}

    def landing(landings: int) -> tuple[int, bool]:
        capture = open_capture(options, known, str(tmp_path), position=orders.position, landings=landings)
        found = capture.land(orders.position)
        return found.transactions, found.caught_up

    assert [landing(0), landing(1)] == [(2, False), (3, True)]
    assert [limit_after(n) for n in (0, 1, 3, 1000)] == [50_000, 200_000, LIMIT, LIMIT]


def test_two_projects_capture_one_table(orders: Follower, url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    second = Follower(url, tmp_path / "second", "orders", slot="headrace_second")
    second.begin()
    db.execute("UPDATE orders SET amount = amount + 1")
    for follower in (orders, second):
        follower.land()
        assert follower.rows("orders") == truth(db, "orders")
    second.capture().remove()


def test_nothing_is_left_behind(orders: Follower, db: psycopg.Connection) -> None:
    orders.capture().remove()
    left = (
        "SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s), (SELECT count(*) FROM pg_publication)"
    )
    assert db.execute(left, (orders.slot,)).fetchone() == (0, 0)


# ---- before it begins


def test_what_cannot_be_captured_is_told_with_the_sql_that_helps(url: str, db: psycopg.Connection) -> None:
    db.execute(
        'CREATE TABLE keyless (a int); CREATE UNLOGGED TABLE fast (a int PRIMARY KEY); CREATE TABLE "Odd ""one" (a int)'
    )
    db.execute('CREATE VIEW seen AS SELECT 1 AS a; CREATE TABLE twice (a int PRIMARY KEY, "A" int)')
    names = [("public", t) for t in ("keyless", "fast", "seen", "twice", "missing", 'Odd "one')]
    names.append(("pg_catalog", "pg_class"))
    found = {c.name: c for c in check(url, names) if not c.ok}
    assert found.keys() == {".".join(name) for name in names}
    assert found["public.keyless"].remedy.startswith('ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL;')
    assert found['public.Odd "one'].remedy.startswith('ALTER TABLE "public"."Odd ""one" REPLICA IDENTITY FULL;')
    assert found["public.fast"].remedy == 'ALTER TABLE "public"."fast" SET LOGGED;'
    assert "a view" in found["public.seen"].finding
    db.execute("ALTER TABLE keyless REPLICA IDENTITY FULL")
    assert all(c.ok for c in check(url, [("public", "keyless")]))


def test_a_superuser_is_never_advised_to_be_granted(url: str, db: psycopg.Connection) -> None:
    role = f"reader_{url.partition('?')[0].rpartition('/')[2]}"
    db.execute(f"CREATE ROLE {role} LOGIN; CREATE ROLE {role}_owner; CREATE ROLE {role}_admin IN ROLE postgres")
    names = [("public", name) for name in ("ours", "theirs", "admins")]
    for (_, name), owner in zip(names, (f"{role}_owner", "postgres", f"{role}_admin"), strict=True):
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY); ALTER TABLE {name} OWNER TO {owner}")
    theirs = url.replace("postgres@", f"{role}@")
    owned = {c.name: c.remedy or "" for c in check(theirs, names) if "belong" in c.finding}
    assert owned["public.ours"].startswith(f'GRANT "{role}_owner" TO "{role}"')
    for table in ("public.theirs", "public.admins"):
        assert "GRANT" not in owned[table]
        db.execute(owned[table])
    assert [c.name for c in check(theirs, names) if "belong" in c.finding] == ["public.ours"]


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_temporary_tables_are_refused_and_hide_nothing(
    orders: Follower, url: str, db: psycopg.Connection, tmp_path: Path, way: type[PostgresCapture]
) -> None:
    db.execute("CREATE TEMPORARY TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (99)")
    schema = str(db.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchall()[0][0])
    (refused,) = (c for c in check(url, [(schema, "orders")]) if not c.ok)
    assert (refused.remedy, "temporary" in refused.finding) == (None, True)
    second = Follower(url, tmp_path / "second", "orders", slot="headrace_temp", way=way)
    second.begin()
    db.execute("INSERT INTO orders VALUES (100); UPDATE orders SET id = id + 50; DROP TABLE orders")
    second.land()
    assert second.rows("orders") == truth(db, "public.orders")
    second.capture().remove()


def test_a_role_without_privileges_is_told_and_one_with_the_least_can_capture(
    server: LogicalServer, url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    role = f"reader_{url.partition('?')[0].rpartition('/')[2]}"
    db.execute(f"CREATE ROLE {role} LOGIN; CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    db.execute(f'CREATE ROLE "{role} owner"; ALTER TABLE t OWNER TO "{role} owner"')
    theirs = url.replace("postgres@", f"{role}@")
    follower = Follower(theirs, tmp_path / "spool", "t")
    with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
        follower.begin()
    hint = caught.value.hint or ""
    assert f'ALTER ROLE "{role}" REPLICATION' in hint
    assert f'GRANT CREATE ON DATABASE "{db.info.dbname}" TO "{role}"' in hint
    assert f'GRANT SELECT ON "public"."t" TO "{role}"' in hint
    for line in hint.splitlines()[1:]:
        db.execute(line)
    follower.begin()
    db.execute("INSERT INTO t VALUES (2)")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    for url in ("postgresql://nobody@127.0.0.1:9/none", f"postgresql://nobody@/none?host={tmp_path}"):
        with pytest.raises(EnvironmentFault, match="SOURCE_UNREACHABLE") as caught:
            Follower(url, tmp_path, "t").begin()
        assert caught.value.retryable


def test_a_server_that_falls_silent_is_noticed_within_a_minute(url: str) -> None:
    """What libpq and the kernel do then is theirs; here they are asked to."""
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    for replication in (False, True):
        with connected(url, replication=replication) as connection:
            found = connection.info.get_parameters()
        assert [found.get(name) for name in names] == ["30", "10", "3", "60000"]
    with connected(f"{url}&keepalives_idle=5&tcp_user_timeout=0") as connection:
        found = connection.info.get_parameters()
    assert [found.get(name, "0") for name in names] == ["5", "10", "3", "0"]


def test_a_wrong_database_is_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="does not exist"):
        Follower(url.replace("@/", "@/no"), tmp_path, "t").begin()
