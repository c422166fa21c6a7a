"""Stream tables into a real PostgreSQL: from a refresh to rows, and back by a source."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from kit.waiting import running, until

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError


@pytest.fixture
def sinks(hr: Headrace, url: str, db: psycopg.Connection) -> Iterator[str]:
    """The database; what is written into it is dropped before stream tables are."""
    yield url
    for sink in hr.sinks.list():
        hr.sinks.drop(sink.name, force=True)


def same(hr: Headrace, db: psycopg.Connection, stream: str, target: str) -> Counter[tuple[object, ...]]:
    """Check that a target has the rows of a stream table, and return them."""
    wanted = hr.spark.table(f"lake.{stream}")
    listed = ", ".join(f'"{f.name}"' for f in wanted.schema)
    found = Counter(db.execute(f"SELECT {listed} FROM {target}").fetchall())
    assert found == Counter(tuple(row) for row in wanted.collect())
    return found


def test_a_round_trip(hr: Headrace, ns: str, sinks: str, db: psycopg.Connection) -> None:
    """PostgreSQL to the lake, through two stream tables of one group, and back."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(12,2))")
    db.execute("INSERT INTO orders SELECT g, 'r' || g % 3, g FROM generate_series(1, 30) g")
    source = f"{ns}_shop"
    hr.sources.create(source, sinks, ["orders"])
    query = f"SELECT region, sum(amount) AS total, count(*) AS n FROM {source}.orders GROUP BY region"
    hr.create_stream_table(f"{ns}.revenue", query)
    hr.create_stream_table(f"{ns}.large", f"SELECT id, amount FROM {source}.orders WHERE amount > 20")
    created = hr.sql(
        f"CREATE SINK {ns}_revenue FROM {ns}.revenue INTO POSTGRES '{sinks}' TABLE public.revenue KEY (region)"
    )
    assert (created.how, created.rows) == ("load", 3)
    hr.sinks.create(f"{ns}_large", f"{ns}.large", sinks, "public.large")
    same(hr, db, f"{ns}.revenue", "revenue")
    for statement in (
        "UPDATE orders SET amount = amount + 100 WHERE id < 4",
        "DELETE FROM orders WHERE region = 'r1'",
        "INSERT INTO orders VALUES (99, NULL, 50.00), (98, 'new', 21)",
    ):
        db.execute(statement)
        hr.refresh()
        same(hr, db, f"{ns}.revenue", "revenue")
        same(hr, db, f"{ns}.large", "large")
    hr.refresh(f"{ns}.revenue", full=True)
    assert {s.version == s.newest for s in hr.sinks.list()} == {True}
    assert hr.sql(f"VERIFY SINK {ns}_revenue").ok
    db.execute("UPDATE revenue SET n = 0 WHERE region = 'r2'")
    compared = hr.sinks.verify(f"{ns}_revenue")
    assert (compared.ok, compared.missing, compared.unexpected) == (False, 1, 1)
    with pytest.raises(HeadraceError, match="SINK_LOOP"):
        hr.sinks.create(f"{ns}_loop", f"{ns}.large", sinks, "orders", key=["id"])
    with pytest.raises(HeadraceError, match="HAS_SINKS"):
        hr.drop_stream_table(f"{ns}.revenue")
    assert hr.sql(f"ALTER SINK {ns}_revenue RESYNC").how == "difference"
    same(hr, db, f"{ns}.revenue", "revenue")
    db.execute("UPDATE headrace.sink_position SET log = regexp_replace(log, '[0-9]+$', '7')")  # as another history's
    with pytest.raises(HeadraceError, match="SINK_CATALOG_SET_BACK"):
        hr.sinks.write(f"{ns}_revenue")
    hr.sinks.resync(f"{ns}_revenue")
    hr.sinks.resync(f"{ns}_large")


def test_a_sink_follows_replacement_promotion_and_maintenance(
    hr: Headrace, ns: str, sinks: str, db: psycopg.Connection
) -> None:
    rows = "id, concat('r', id % 4) AS region, CAST(id AS DECIMAL(12,2)) AS amount FROM range(40)"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.o USING iceberg AS SELECT {rows}")
    stream, target = f"{ns}.revenue", f"{ns}_target"
    grouped = f"SELECT region, sum(amount) AS total FROM {ns}.o GROUP BY region"
    hr.create_stream_table(stream, grouped)
    hr.sinks.create(target, stream, sinks, target, key=["region"])
    db.execute(f"CREATE ROLE {ns}_reader")
    db.execute(f"GRANT SELECT ON {target} TO {ns}_reader")
    oid = db.execute("SELECT %s::regclass::oid", (target,)).fetchone()

    def change(where: str) -> None:
        hr.spark.sql(f"UPDATE lake.{ns}.o SET amount = amount + 1 WHERE {where}")
        hr.refresh(stream)
        same(hr, db, stream, target)

    change("region = 'r1'")
    hr.create_stream_table(stream, grouped.replace("GROUP", "WHERE id > 7 GROUP"), or_replace=True)
    change("region = 'r2'")
    hr.create_green(stream, grouped.replace("GROUP", "WHERE id > 9 GROUP"))
    hr.promote_green(stream)
    assert hr.sinks.write(target)[0].how == "change"
    same(hr, db, stream, target)
    hr.maintain(stream, older_than=dt.timedelta(0))
    change("region = 'r3'")
    assert db.execute("SELECT %s::regclass::oid", (target,)).fetchone() == oid
    hr.create_stream_table(stream, grouped.replace("AS total", "AS total, count(*) AS n"), or_replace=True)
    with pytest.raises(HeadraceError, match="SINK_COLUMNS_CHANGED"):
        hr.sinks.write(target)
    assert hr.sinks.status(target).status.value == "STOPPED"
    with pytest.raises(HeadraceError, match="SINK_HELD"):
        hr.sinks.write(target)
    hr.refresh(stream)  # a sink that is stopped is nobody's trouble
    assert hr.sinks.resync(target).how == "difference"
    same(hr, db, stream, target)
    change("region = 'r3'")
    granted = db.execute(f"SELECT has_table_privilege('{ns}_reader', '{target}', 'SELECT')").fetchone()
    assert granted == (True,)
    db.execute(f"DROP OWNED BY {ns}_reader; DROP ROLE {ns}_reader")
    hr.sinks.drop(target)
    hr.cancel_green(stream)


def test_a_group_is_written_in_one_transaction(hr: Headrace, ns: str, sinks: str, db: psycopg.Connection) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.o (id BIGINT, amount BIGINT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.o SELECT id, id FROM range(10)")
    hr.create_stream_table(f"{ns}.a", f"SELECT sum(amount) AS s FROM {ns}.o")
    hr.create_stream_table(f"{ns}.b", f"SELECT count(*) AS c FROM {ns}.o")
    hr.create_refresh_group(f"{ns}_g", [f"{ns}.a", f"{ns}.b"])
    hr.sinks.create(f"{ns}_a", f"{ns}.a", sinks, "a")
    hr.sinks.create(f"{ns}_b", f"{ns}.b", sinks, "b")

    def moments() -> set[object]:
        return {row[0] for row in db.execute("SELECT xmin::text FROM a UNION SELECT xmin::text FROM b").fetchall()}

    hr.spark.sql(f"INSERT INTO lake.{ns}.o VALUES (10, 10)")
    hr.refresh()
    assert len(moments()) == 1
    assert db.execute("SELECT s, c FROM a, b").fetchall() == [(55, 11)]
    db.execute("DELETE FROM b")
    hr.spark.sql(f"INSERT INTO lake.{ns}.o VALUES (11, 11)")
    with pytest.raises(HeadraceError, match="SINK_TARGET_CHANGED"):
        hr.refresh()
    assert db.execute("SELECT s FROM a").fetchall() == [(55,)], "half of it would show"
    assert hr.sinks.status(f"{ns}_a").waits_for == f"{ns}_b"
    hr.sinks.resync(f"{ns}_b")
    assert db.execute("SELECT s, c FROM a, b").fetchall() == [(66, 12)]
    assert len(moments()) == 1
    hr.drop_refresh_group(f"{ns}_g")


def test_a_target_that_is_away_is_tried_again(
    hr: Headrace, ns: str, sinks: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And holds up nobody; the connection string comes from the environment, where it may hold a password."""
    monkeypatch.setenv("SINK_OF_TEST", f"{sinks}&password=secret")
    hr.spark.sql(f"CREATE TABLE lake.{ns}.o (id BIGINT) USING iceberg")
    hr.create_stream_table(f"{ns}.a", f"SELECT id FROM {ns}.o", schedule="ON CHANGE")
    hr.sinks.create(f"{ns}_away", f"{ns}.a", "env:SINK_OF_TEST", "away", key=["id"])
    hr.sinks.create(f"{ns}_here", f"{ns}.a", sinks, "here", key=["id"])
    monkeypatch.setenv("SINK_OF_TEST", "postgresql://127.0.0.1:1/x")
    hr.spark.sql(f"INSERT INTO lake.{ns}.o VALUES (1)")
    with pytest.raises(HeadraceError, match="SINK_UNREACHABLE"):
        hr.refresh()
    assert db.execute("SELECT id FROM here").fetchall() == [(1,)]
    away = hr.sinks.status(f"{ns}_away")
    assert away.last_error is not None
    assert away.last_error.startswith("[SINK_UNREACHABLE]")
    assert away.retry_at is not None
    assert (away.status.value, away.failures, away.version != away.newest) == ("ACTIVE", 1, True)
    assert not hr.sinks.due(), "not before its time"
    monkeypatch.setenv("SINK_OF_TEST", f"{sinks}&password=secret")
    hr.sinks.resume(f"{ns}_away")
    assert hr.run(once=True).written
    assert db.execute("SELECT id FROM away").fetchall() == [(1,)]
    with running(lambda stopping: hr.run(stopping=stopping)):
        hr.spark.sql(f"INSERT INTO lake.{ns}.o VALUES (2)")
        written = "SELECT (SELECT count(*) FROM away), (SELECT count(*) FROM here)"
        until(lambda: db.execute(written).fetchone() == (2, 2), seconds=120)
    assert "secret" not in str(hr.sinks.list())
