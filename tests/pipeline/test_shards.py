"""Several databases as shards of one source: one mirror a table, with the rows of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from kit.logical import LogicalServer

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.lake.tables import OPERATION
from headrace.names import STAGING, WEIGHT

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(12,2))"


@pytest.fixture
def urls(server: LogicalServer) -> list[str]:
    return [server.fresh(), server.fresh()]


@pytest.fixture
def dbs(urls: list[str]) -> Iterator[list[psycopg.Connection]]:
    """Two databases with orders 1 to 4, and 11 to 14."""
    opened = [psycopg.connect(url, autocommit=True) for url in urls]
    for number, db in enumerate(opened):
        db.execute(TABLE)
        db.execute("INSERT INTO orders SELECT g + %s, 'r' || g %% 2, g FROM generate_series(1, 4) g", (number * 10,))
    yield opened
    for db in opened:
        db.close()


def mirrored(hr: Headrace, source: str, column: str = "__shard") -> Counter[tuple[object, ...]]:
    rows = hr.sql(f"SELECT {column}, id, region, amount FROM lake.{source}.orders").collect()
    return Counter(tuple(r) for r in rows)


def truth(dbs: list[psycopg.Connection], names: tuple[str, ...] = ("s1", "s2")) -> Counter[tuple[object, ...]]:
    return Counter(
        (name, *row) for name, db in zip(names, dbs, strict=True) for row in db.execute("SELECT * FROM orders")
    )


def operations(hr: Headrace, source: str) -> list[int]:
    """The operation ids of all rows of a mirror's change log."""
    with hr._catalog.reading() as reader:
        [mirror] = reader.source(source).mirrors
    rows = hr.spark.sql(f"SELECT {OPERATION}, {WEIGHT} FROM {mirror.log.within(STAGING).sql} ORDER BY 1").collect()
    return [row[0] for row in rows]


def test_two_servers_are_one_mirror(hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection]) -> None:
    source = f"{ns}_shop"
    hr.sql(
        f"CREATE SOURCE {source} FROM POSTGRES SHARDS ('{urls[0]}', '{urls[1]}' CAPTURE TRIGGER) TABLES (public.orders)"
    )
    assert mirrored(hr, source) == truth(dbs)
    hr.create_stream_table(f"{ns}.sums", f"SELECT region, sum(amount) AS total FROM {source}.orders GROUP BY region")
    dbs[0].execute("UPDATE orders SET amount = amount + 1 WHERE id < 3; DELETE FROM orders WHERE id = 4")
    dbs[1].execute("INSERT INTO orders VALUES (15, 'r1', 9)")
    [result] = hr.sources.land(source)
    assert (result.inserted, result.deleted, result.mirrors) == (3, 3, (f"{source}.orders",))
    assert mirrored(hr, source) == truth(dbs)
    first = operations(hr, source)
    dbs[0].execute("TRUNCATE orders")  # touches the rows of the one server only
    dbs[1].execute("DELETE FROM orders WHERE id = 11")
    hr.refresh()
    assert mirrored(hr, source) == truth(dbs)
    assert hr.verify(f"{ns}.sums").ok
    later = operations(hr, source)
    assert len(set(later)) == len(later) == len(first) + 4
    assert min(set(later) - set(first)) > max(first)
    status = hr.sources.status(source)
    assert (status.capture, status.operation >= max(later)) == ("mixed", True)
    assert [shard["reached"] for shard in status.shards.values()] == [True, True]
    hr.sources.resnapshot(source)
    dbs[0].execute("INSERT INTO orders VALUES (1, 'r1', 1)")
    hr.refresh()
    assert mirrored(hr, source) == truth(dbs)
    assert max(operations(hr, source)) > max(later)
    hr.drop_stream_table(f"{ns}.sums")
    hr.sources.drop(source)
    for db in dbs:
        left = (
            db.execute("SELECT count(*) FROM pg_publication").fetchone(),
            db.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'headrace%'").fetchone(),
        )
        assert left == ((0,), (0,))


def test_a_row_that_moves_is_one_update_and_a_key_is_on_one_server(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection]
) -> None:
    source = f"{ns}_shop"
    hr.sources.create(source, {"eu": urls[0], "us": urls[1]}, ["orders"], shard_column="at")
    hr.create_stream_table(f"{ns}.seen", f"SELECT id, amount, at FROM {source}.orders")
    dbs[1].execute("INSERT INTO orders VALUES (1, 'r1', 1)")
    with pytest.raises(HeadraceError) as raised:
        hr.sources.land(source)
    assert (raised.value.code, raised.value.retryable) == ("KEY_ON_TWO_NODES", True)
    assert "eu and us both have a row" in raised.value.message
    assert "id = 1" in raised.value.message
    before = mirrored(hr, source, "at")
    assert ("us", 1) not in {row[:2] for row in before}
    dbs[0].execute("DELETE FROM orders WHERE id = 1")
    [result] = hr.sources.land(source)
    assert (result.inserted, result.deleted) == (1, 1)
    assert mirrored(hr, source, "at") == truth(dbs, ("eu", "us"))
    hr.refresh()
    assert hr.verify(f"{ns}.seen").ok
    hr.drop_stream_table(f"{ns}.seen")
    hr.sources.drop(source)
