"""A real PostgreSQL as source and as sink of a project whose lake is a REST catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server
from kit.rest_server import RestServer
from pyiceberg.catalog import load_catalog

import headrace
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError


@pytest.fixture(scope="module")
def hr(server: RestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headrace]:
    with headrace.open(server.settings(tmp_path_factory.mktemp("project"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgres() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


@pytest.fixture
def db(postgres: LogicalServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.fresh(), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(12,2))")
        connection.execute("INSERT INTO orders SELECT g, 'r' || g % 3, g FROM generate_series(1, 30) g")
        yield connection


def ordered(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("way", ["wal", "trigger"])
def test_rows_come_from_a_database_and_go_back(
    hr: Headrace, server: RestServer, db: psycopg.Connection, way: str
) -> None:
    source, url = f"shop_{way}", db.info.dsn
    hr.sources.create(source, url, ["orders"], capture=way)
    revenue = f"{source}.revenue"
    hr.create_stream_table(
        revenue,
        f"SELECT region, sum(amount) AS total FROM {source}.orders GROUP BY region",
        refresh_mode="DIFFERENTIAL",
    )
    hr.sinks.create(f"{source}_revenue", revenue, url, "public.revenue", key=["region"])
    hr.sinks.create(f"{source}_log", revenue, url, "public.revenue_log")
    for statement in (
        "UPDATE orders SET amount = amount + 100 WHERE id < 4",
        "DELETE FROM orders WHERE region = 'r1'",
        "INSERT INTO orders VALUES (99, NULL, 50.00), (98, 'new', 21)",
    ):
        db.execute(statement)
        hr.refresh()
        assert server.rows(f"{source}.orders") == ordered(db.execute("SELECT * FROM orders").fetchall())
        expected = ordered(db.execute("SELECT region, sum(amount) FROM orders GROUP BY region").fetchall())
        assert server.rows(revenue) == expected
        for target in ("revenue", "revenue_log"):
            assert ordered(db.execute(f"SELECT region, total FROM {target}").fetchall()) == expected
    assert hr.verify(revenue).ok
    assert all(sink.version == sink.newest for sink in hr.sinks.list())
    hr.maintain()
    for sink in hr.sinks.list():
        hr.sinks.drop(sink.name, force=True)
    hr.drop_stream_table(revenue)
    hr.sources.drop(source)
    assert not load_catalog("reader", type="rest", uri=server.uri).table_exists(f"{source}.orders")


def test_what_was_captured_while_the_server_was_away_lands_afterwards(
    hr: Headrace, server: RestServer, db: psycopg.Connection
) -> None:
    hr.sources.create("late", db.info.dsn, ["orders"])
    was = server.rows("late.orders")
    db.execute("DELETE FROM orders WHERE id > 10")
    server.kill()
    with pytest.raises(HeadraceError) as caught:
        hr.sources.land("late")
    assert (caught.value.code, caught.value.retryable) == ("LAKE_UNREACHABLE", True)
    server.start()
    assert server.rows("late.orders") == was
    hr.sources.land("late")
    assert server.rows("late.orders") == ordered(db.execute("SELECT * FROM orders").fetchall())
    hr.sources.drop("late")
