"""A real PostgreSQL captured into a real lake: mirrors equal tables, stream tables follow them."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.lake import apply_change
from headrace.lake.files import durable_files
from headrace.landing import mirrors
from headrace.reasons import FullReason
from headrace.sources.postgres.wal.wal_capture import PostgresCapture


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted((tuple(r) for r in hr.sql(f"SELECT * FROM lake.{table}").collect()), key=repr)


@pytest.mark.parametrize("way", [pytest.param("wal", marks=pytest.mark.long), "trigger"])
def test_a_transfer_is_never_seen_half(
    hr: Headrace, ns: str, url: str, db: psycopg.Connection, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    flush = durable_files._flush
    monkeypatch.setattr(durable_files, "_flush", lambda path: (flush(path), flushed.append(path)))
    for table in ("here", "there"):
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, owner text, amount numeric(12,2))")
        db.execute(f"INSERT INTO {table} SELECT g, 'o' || g % 3, 100 FROM generate_series(1, 50) g")
    source = f"{ns}_bank"
    tables = f"TABLES (public.here, there) WITH (capture = '{way}')"
    created = hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' {tables}")
    assert (created.inserted, created.mirrors) == (100, (f"{source}.here", f"{source}.there"))
    hr.create_stream_table(
        f"{ns}.both",
        f"SELECT owner, amount FROM {source}.here UNION ALL SELECT owner, amount FROM {source}.there",
        refresh_mode="DIFFERENTIAL",
    )
    hr.create_stream_table(f"{ns}.total", f"SELECT sum(amount) AS total FROM {ns}.both", refresh_mode="DIFFERENTIAL")
    for step in (2, 5):
        for at in range(1, 20, step):
            with db.transaction():
                db.execute("UPDATE here SET amount = amount - %s WHERE id = %s", (at, at))
                db.execute("UPDATE there SET amount = amount + %s WHERE id = %s", (at, 51 - at))
        both, _ = hr.refresh([f"{ns}.both", f"{ns}.total"])
        assert (both.mode.value, both.rows_inserted) == ("DIFFERENTIAL", len(range(1, 20, step)) * 2)
        assert [int(r[0]) for r in rows(hr, f"{ns}.total")] == [10_000]
    assert hr.verify(f"{ns}.both").ok
    expected = db.execute("SELECT id, owner, amount FROM here").fetchall()
    assert rows(hr, f"{source}.here") == sorted(expected, key=repr)
    assert hr.refresh(f"{ns}.both").mode.value == "NO_CHANGE"
    written = set(Path(hr.settings.warehouse).glob(f"{source}*/**/[!.]*"))
    assert len(written) > 20
    left = {path.name[:6] for path in written - set(flushed)}
    assert left <= {"00000-"}, "the database has let go of the changes; of the empty table nothing is read"
    with pytest.raises(HeadraceError, match="HAS_CONSUMERS"):
        hr.sql(f"DROP SOURCE {source}")
    hr.drop_stream_table(f"{ns}.both", cascade=True)
    assert hr.sql(f"DROP SOURCE {source}") == (f"{source}.here", f"{source}.there")
    left = "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()), "
    left += "(SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal)"
    assert db.execute(left).fetchone() == (0, 0, 0)
    assert source not in {s.name for s in hr.sources.list()}


ZONES = ("UTC", "Asia/Tokyo")


@pytest.mark.parametrize("way", ["wal", pytest.param("trigger", marks=pytest.mark.long)])
def test_what_was_landed_is_handed_to_those_who_read_the_mirror(
    hr: Headrace,
    ns: str,
    url: str,
    db: psycopg.Connection,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    over_connect: bool,
) -> None:
    source, zone = f"{ns}_shop", hr.spark.conf.get("spark.sql.session.timeZone")
    db.execute("CREATE TABLE visits (id int PRIMARY KEY, at timestamptz, paid numeric(12,2))")
    hours = "'2026-01-01Z'::timestamptz + g * interval '1 h'"
    db.execute(f"INSERT INTO visits SELECT g, {hours}, g FROM generate_series(1, 99) g")
    hr.sources.create(source, url, ["visits"], capture=way)
    query = f"SELECT hour(at) AS hour, count(*) AS n, sum(paid) AS paid FROM {source}.visits GROUP BY hour(at)"
    names = [f"{ns}.{name.lower().replace('/', '_')}" for name in ZONES]
    for name, of in zip(names, ZONES, strict=True):
        hr.spark.conf.set("spark.sql.session.timeZone", of)
        hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    hr.spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    asked: list[str] = []
    sql = type(hr.spark).sql

    def told(session: SparkSession, text: str, *args: object, **kwargs: object) -> DataFrame:
        if re.search(r"FROM `?(lake|staging)`?\.`?_headrace`?\.`?\w+_visits_\w*log\b", text):
            asked.append(text)
        return sql(session, text, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(type(hr.spark), "sql", told)
    left = hr._engine().refresher.changes.views
    for statement in ("UPDATE visits SET paid = paid + 1 WHERE id < 9", "DELETE FROM visits WHERE id = 7"):
        db.execute(statement)
        assert {result.mode.value for result in hr.refresh(names)} == {"DIFFERENTIAL"}
        assert bool(asked) is over_connect
        # a log that is read is kept for readers in the same time zone, who may come yet
        assert over_connect or hr._engine().refresher.changes.views == left
    db.execute("UPDATE visits SET paid = paid + 1 WHERE id < 5")
    hr.sources.land(source)
    db.execute("UPDATE visits SET at = at + interval '1 h' WHERE id < 9")
    hr.refresh(names)  # two landings at once are read from the log
    assert asked
    assert all(verified.ok for verified in hr.verify(names))


@pytest.mark.long
def test_a_table_that_begins_at_a_gate_misses_nothing(hr: Headrace, ns: str, url: str, db: psycopg.Connection) -> None:
    """What is landed behind a closed gate is not in the log any more, as nobody was there to read it."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int); INSERT INTO orders VALUES (1, 10), (2, 20)")
    source, name = f"{ns}_gated", f"{ns}.open"
    hr.sources.create(source, url, ["orders"])
    hr.close_gate(f"{source}.orders")
    db.execute("UPDATE orders SET v = 11 WHERE id = 1")
    hr.sources.land(source)
    hr.maintain([f"{source}.orders"])
    hr.create_stream_table(name, f"SELECT id, v FROM {source}.orders", refresh_mode="DIFFERENTIAL")
    assert rows(hr, name) == [(1, 10), (2, 20)]
    hr.open_gate(f"{source}.orders")
    assert hr.refresh(name).reason is FullReason.HISTORY_EXPIRED
    assert rows(hr, name) == [(1, 11), (2, 20)]
    assert hr.verify(name).ok


def test_mirrors_follow_keys_bags_large_values_and_altered_tables(
    hr: Headrace, ns: str, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = partial(PostgresCapture, most=3)  # so that a landing is spilled in several parts
    monkeypatch.setattr("headrace.sources.postgres.setup.open_capture.PostgresCapture", in_parts)
    db.execute("CREATE TABLE docs (a int, b text, body text, PRIMARY KEY (a, b))")
    db.execute("CREATE TABLE bag (x int, y text)")
    db.execute("ALTER TABLE bag REPLICA IDENTITY FULL; ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    db.execute("INSERT INTO docs SELECT g, 'k', repeat(g::text, 9000) FROM generate_series(1, 9) g")
    db.execute("INSERT INTO bag SELECT g % 3, 'v' FROM generate_series(1, 9) g")
    source = f"{ns}_shop"
    hr.sources.create(source, url, ["public.docs", "bag"])
    hr.create_stream_table(f"{ns}.bags", f"SELECT x, count(*) AS n FROM {source}.bag GROUP BY x")

    def same() -> None:
        hr.refresh()
        for table in ("docs", "bag"):
            columns = ", ".join(f.name for f in hr.spark.table(f"lake.{source}.{table}").schema)
            expected = sorted(db.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
            assert rows(hr, f"{source}.{table}") == expected

    same()
    db.execute("UPDATE docs SET b = 'moved' WHERE a = 1; UPDATE docs SET a = 100 WHERE a = 2")
    db.execute("BEGIN; DELETE FROM docs WHERE a = 3; INSERT INTO docs VALUES (3, 'k', 'again'); COMMIT")
    db.execute(
        "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE x = 1 LIMIT 2); UPDATE bag SET y = NULL WHERE x = 2"
    )
    same()
    done = hr.maintain([f"{source}.docs", f"{source}.bag", f"{ns}.bags"], older_than=dt.timedelta(0))
    assert {d.action for d in done if source in d.name} >= {"expire", "trim_log"}
    assert not [d for d in done if d.action == "pin" and source in d.name]
    db.execute("TRUNCATE docs; INSERT INTO docs VALUES (7, 'seven', NULL)")
    db.execute("ALTER TABLE bag ADD COLUMN z int DEFAULT 5; ALTER TABLE docs RENAME body TO content")
    db.execute("INSERT INTO bag VALUES (4, 'w', 6)")
    same()
    db.execute(
        "ALTER TABLE docs DROP COLUMN content; ALTER TABLE bag ALTER z TYPE text; ALTER TABLE bag RENAME TO sack"
    )
    db.execute("CREATE VIEW bag AS SELECT * FROM sack; INSERT INTO sack VALUES (9, '', 'nine'), (9, '', NULL)")
    same()
    assert hr.verify(f"{ns}.bags").ok
    assert {s.status.value for s in hr.sources.list() if s.name == source} == {"ACTIVE"}


@pytest.mark.parametrize(("filler", "also"), [(0, ""), (3_000, ""), (0, "UPDATE copies SET v = 'w' WHERE id = 1;")])
def test_a_table_that_gets_a_key_is_landed_although_its_mirror_has_copies(
    hr: Headrace,
    ns: str,
    url: str,
    db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    filler: int,
    also: str,
) -> None:
    for module in (apply_change, mirrors):
        monkeypatch.setattr(module, "SMALL_STATE_CELLS", 4_000)
    db.execute("CREATE TABLE copies (id int, v text); ALTER TABLE copies REPLICA IDENTITY FULL")
    db.execute("INSERT INTO copies VALUES (1, 'x'), (1, 'x'), (2, 'y')")
    db.execute(f"INSERT INTO copies SELECT g + 10, 'z' FROM generate_series(1, {filler}) g")
    source = f"{ns}_copies"
    hr.sources.create(source, url, ["copies"])

    def same() -> None:
        hr.sources.land(source)
        columns = ", ".join(f.name for f in hr.spark.table(f"lake.{source}.copies").schema)
        expected = sorted(db.execute(f"SELECT {columns} FROM copies").fetchall(), key=repr)
        assert rows(hr, f"{source}.copies") == expected

    db.execute(
        "BEGIN; DELETE FROM copies WHERE ctid = (SELECT min(ctid) FROM copies WHERE id = 1); "
        f"ALTER TABLE copies ADD PRIMARY KEY (id); {also} COMMIT"
    )
    same()
    db.execute("UPDATE copies SET v = 'new' WHERE id = 1; DELETE FROM copies WHERE id = 2")
    same()
    db.execute("ALTER TABLE copies RENAME id TO number; ALTER TABLE copies RENAME v TO id")
    db.execute("ALTER TABLE copies RENAME number TO v; UPDATE copies SET id = 'newer' WHERE v = 1")
    same()
    assert {s.status.value for s in hr.sources.list() if s.name == source} == {"ACTIVE"}


def test_a_lost_slot_stops_the_source_until_a_new_snapshot(
    hr: Headrace, ns: str, url: str, db: psycopg.Connection
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, g FROM generate_series(1, 100) g")
    source = f"{ns}_lost"
    hr.sources.create(source, url, ["t"])
    hr.create_stream_table(f"{ns}.small", f"SELECT id, v FROM {source}.t WHERE v < 50", refresh_mode="DIFFERENTIAL")
    db.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    db.execute("UPDATE t SET v = v + 1 WHERE id < 10; DELETE FROM t WHERE id = 60")
    for _ in range(2):
        with pytest.raises(HeadraceError, match="SLOT_LOST"):
            hr.refresh(f"{ns}.small")
    assert [(s.status.value, s.name) for s in hr.sources.list()] == [("STOPPED", source)]
    assert hr.sources.status(source).slot_status is None
    again = hr.sources.resnapshot(source)
    assert (again.inserted, again.deleted) == (9, 10)
    result = hr.refresh(f"{ns}.small")
    assert (result.mode.value, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 9, 9)
    assert rows(hr, f"{source}.t") == sorted(db.execute("SELECT * FROM t").fetchall(), key=repr)
    hr.sources.pause(source)
    db.execute("DELETE FROM t")
    assert hr.refresh(f"{ns}.small").mode.value == "NO_CHANGE"
    hr.sources.resume(source)
    assert hr.refresh(f"{ns}.small").rows_deleted == 49
    hr.spark.sql(f"INSERT INTO lake.{source}.t VALUES (1, 1)")
    db.execute("INSERT INTO t VALUES (2, 2)")
    with pytest.raises(HeadraceError, match="FOREIGN_WRITER") as caught:
        hr.sources.land(source)
    assert f"headrace repair {source}.t" in str(caught.value.hint)
