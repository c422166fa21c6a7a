"""Several databases as shards of one source: one mirror a table, with the rows of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from kit.logical import LogicalServer

from headrace.api.facade import Headrace
from headrace.catalog import DatabaseSource
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


@pytest.mark.long
def test_a_row_that_moves_is_one_update_and_a_key_is_on_one_server(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection]
) -> None:
    source = f"{ns}_shop"
    hr.sources.create(source, {"eu": urls[0], "us": urls[1]}, ["orders"], shard_column="at")
    hr.create_stream_table(f"{ns}.seen", f"SELECT id, amount, at FROM {source}.orders")
    dbs[1].execute("INSERT INTO orders VALUES (1, 'r1', 1)")
    dbs[0].execute("INSERT INTO orders VALUES (5, 'r1', 5)")
    [result] = hr.sources.land(source)
    assert list(result.held) == ["us"], "the one that added it; the other goes on"
    assert "[KEY_ON_TWO_NODES] Shard us: eu and us both have a row" in result.held["us"]
    assert "id = 1" in result.held["us"]
    assert mirrored(hr, source, "at") == truth(dbs, ("eu", "us")) - Counter([("us", 1, "r1", 1)])
    dbs[0].execute("UPDATE orders SET amount = 6 WHERE id = 5")
    dbs[1].execute("UPDATE orders SET amount = 6 WHERE id = 11")
    [result] = hr.sources.land(source)
    assert (result.inserted, list(result.held)) == (1, ["us"]), "held back with all that it committed since"
    dbs[0].execute("DELETE FROM orders WHERE id = 1")
    [result] = hr.sources.land(source)
    assert (result.inserted, result.deleted, result.held) == (2, 2, {})
    assert mirrored(hr, source, "at") == truth(dbs, ("eu", "us"))
    hr.refresh()
    assert hr.verify(f"{ns}.seen").ok
    hr.drop_stream_table(f"{ns}.seen")
    hr.sources.drop(source)


@pytest.mark.parametrize(
    ("alter", "change"),
    [
        ("ADD PRIMARY KEY (id)", ""),
        ("DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id)", "UPDATE t SET note = 'c' WHERE id = 7"),
    ],
)
def test_a_key_that_tables_get_later_is_on_one_server_only(
    hr: Headrace, ns: str, urls: list[str], alter: str, change: str
) -> None:
    """Each server sees to its own rows, which need not change for it."""
    source, key = f"{ns}_shop", ", PRIMARY KEY (note)" if "DROP" in alter else ""
    for url, note in zip(urls, "ab", strict=True):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"CREATE TABLE t (id int NOT NULL, note text{key})")
            db.execute("ALTER TABLE t REPLICA IDENTITY FULL" if not key else "SELECT")
            db.execute("INSERT INTO t VALUES (1, %s)", (note,))
            if note == "a":
                db.execute("INSERT INTO t VALUES (7, 'd')")
    hr.sources.create(source, {"eu": urls[0], "us": urls[1]}, ["t"])
    for url in urls:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"ALTER TABLE t {alter}; {change or 'SELECT'}")
    with pytest.raises(HeadraceError) as raised:
        hr.sources.land(source)
    assert raised.value.code == "KEY_ON_TWO_NODES"
    with hr._catalog.reading() as reader:
        [mirror] = reader.source(source).mirrors
    assert mirror.key == (("note",) if key else ())
    with psycopg.connect(urls[1], autocommit=True) as db:
        db.execute("UPDATE t SET id = 2")
    assert not any(result.held for result in hr.sources.land(source))
    with hr._catalog.reading() as reader:
        [mirror] = reader.source(source).mirrors
    assert mirror.key == ("id",)
    hr.sources.drop(source)


def test_rows_that_move_in_more_than_one_landing_arrive(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first part of what has moved has a key on both servers, one waits until the next has all there is."""
    monkeypatch.setattr("headrace.sources.postgres.setup.open_capture.FIRST_LIMIT", 10)
    source = f"{ns}_shop"
    dbs[0].execute("INSERT INTO orders SELECT g, 'r', g FROM generate_series(101, 160) g")
    hr.sources.create(source, urls, ["orders"])
    for key in range(101, 161):
        dbs[1].execute("INSERT INTO orders VALUES (%s, 'r', 1)", (key,))
    for key in range(160, 100, -1):
        dbs[0].execute("DELETE FROM orders WHERE id = %s", (key,))
    first, *_, last = hr.sources.land(source)
    assert (list(first.held), last.held) == (["s2"], {})
    assert mirrored(hr, source) == truth(dbs)
    hr.sources.drop(source)


@pytest.mark.long
def test_one_source_is_shared_by_several_stream_tables(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection]
) -> None:
    source = f"{ns}_shop"
    hr.sources.create(source, urls, ["orders"])
    queries = {
        "by_region": f"SELECT region, sum(amount) AS total FROM {source}.orders GROUP BY region",
        "by_shard": f"SELECT __shard, count(*) AS n FROM {source}.orders GROUP BY __shard",
        "large": f"SELECT id, amount FROM {source}.orders WHERE amount > 2",
    }
    for name, query in queries.items():
        hr.create_stream_table(f"{ns}.{name}", query, refresh_mode="DIFFERENTIAL")
    dbs[0].execute("UPDATE orders SET amount = 10 WHERE id < 3")
    dbs[1].execute("INSERT INTO orders VALUES (20, 'r5', 5)")
    hr.refresh()
    assert all(result.ok for result in hr.verify([f"{ns}.{name}" for name in queries]))
    hr.drop_stream_table(f"{ns}.large")
    dbs[1].execute("DELETE FROM orders WHERE id < 13")
    hr.refresh()
    assert all(result.ok for result in hr.verify([f"{ns}.by_region", f"{ns}.by_shard"]))
    assert mirrored(hr, source) == truth(dbs)
    with pytest.raises(HeadraceError) as raised:
        hr.sources.drop(source)
    assert raised.value.code == "HAS_CONSUMERS"
    for name in ("by_region", "by_shard"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)


def test_shards_come_and_go_and_move(
    hr: Headrace, ns: str, server: LogicalServer, urls: list[str], dbs: list[psycopg.Connection]
) -> None:
    source, third = f"{ns}_shop", server.fresh()
    hr.sources.create(source, urls[:1], ["orders"])
    hr.create_stream_table(f"{ns}.sums", f"SELECT __shard, count(*) AS n FROM {source}.orders GROUP BY __shard")
    dbs[0].execute("UPDATE orders SET amount = 50 WHERE id = 1")
    hr.sql(f"ALTER SOURCE {source} ADD SHARD '{urls[1]}' CAPTURE TRIGGER")
    assert mirrored(hr, source) == truth(dbs)
    dbs[1].execute("DELETE FROM orders WHERE id = 12")
    hr.refresh()
    assert mirrored(hr, source) == truth(dbs)
    with psycopg.connect(third, autocommit=True) as db:
        with pytest.raises(HeadraceError) as raised:
            hr.sources.add_shard(source, third, shard="late")
        assert raised.value.code == "SHARDS_DIFFER"
        db.execute(TABLE)
        rows = dbs[1].execute("SELECT * FROM orders").fetchall()
        db.cursor().executemany("INSERT INTO orders VALUES (%s, %s, %s)", rows)
        db.execute("INSERT INTO orders VALUES (16, 'r9', 6)")
        result = hr.sql(f"ALTER SOURCE {source} MOVE SHARD s2 TO '{third}'")
        assert (result.inserted, result.deleted) == (1, 0)  # the difference only
        assert dbs[1].execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'headrace%'").fetchone() == (0,)
        db.execute("UPDATE orders SET amount = 7 WHERE id = 16")
        hr.refresh()
        assert mirrored(hr, source) == truth([dbs[0], db])
        before = mirrored(hr, source)
        with pytest.raises(HeadraceError) as raised:  # the same rows once more
            hr.sources.add_shard(source, urls[1])
        assert raised.value.code == "KEY_ON_TWO_NODES"
        assert mirrored(hr, source) == before
        left = dbs[1].execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()")
        assert left.fetchone() == (0,), "a failure takes away what it installed"
        hr.sql(f"ALTER SOURCE {source} RESNAPSHOT SHARDS (s2)")
        assert mirrored(hr, source) == before
        hr.sql(f"ALTER SOURCE {source} DROP SHARD s1")
        assert mirrored(hr, source) == truth([db], ("s2",))
        hr.refresh()
        assert hr.verify(f"{ns}.sums").ok
        with pytest.raises(HeadraceError) as raised:
            hr.sources.drop_shard(source, "s2")
        assert raised.value.code == "SOURCE_WITHOUT_TABLES"
    assert list(hr.sources.status(source).shards) == ["s2"]
    hr.drop_stream_table(f"{ns}.sums")
    hr.sources.drop(source)


@pytest.mark.parametrize("availability", ["strict", "partial"])
def test_a_stopped_source_goes_on_once_the_shard_that_stopped_it_is_copied_again(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection], availability: str
) -> None:
    source = f"{ns}_shop"
    hr.sources.create(source, {"eu": urls[0], "us": urls[1]}, ["orders"], availability=availability)
    with hr._catalog.reading() as reader:
        nodes = reader.source(source).options["nodes"]
    lost = {"eu": dbs[0], "us": dbs[1]} if availability == "partial" else {"us": dbs[1]}
    for name, db in lost.items():
        db.execute("SELECT pg_drop_replication_slot(%s)", (nodes[name]["slot"],))
    for number, db in enumerate(dbs):
        db.execute("INSERT INTO orders VALUES (%s, 'r1', 5)", (number * 10 + 5,))
    with pytest.raises(HeadraceError):
        hr.sources.land(source)
    assert hr.sources.status(source).status == "STOPPED"
    with pytest.raises(HeadraceError, match="is STOPPED, so that nothing is landed") as raised:
        hr.sources.resnapshot(source, ["orders"], shards=["us"])
    assert "resume" not in str(raised.value.hint)
    result = hr.sources.resnapshot(source, shards=["us"])
    assert hr.sources.status(source).status == "ACTIVE"
    assert list(result.held) == (["eu"] if availability == "partial" else [])
    if result.held:
        hr.sources.resnapshot(source, shards=["eu"])
    dbs[0].execute("DELETE FROM orders WHERE id = 1")
    assert not hr.sources.land(source)[-1].held
    assert mirrored(hr, source) == truth(dbs, ("eu", "us"))
    hr.sources.drop(source)


@pytest.mark.long
def test_many_rows_of_shards_are_landed_as_few_are(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.sources.postgres.spool.landed_table.FEW", 0)
    for module in ("lake.apply_change", "landing.mirrors"):
        monkeypatch.setattr(f"headrace.{module}.SMALL_STATE_CELLS", 0)
    source = f"{ns}_shop"
    hr.sources.create(source, urls, ["orders"])
    ids: list[int] = []
    changes = (
        "INSERT INTO orders SELECT g + %(at)s, 'r', g FROM generate_series(20, 900) g",
        "UPDATE orders SET amount = amount + 1 WHERE id %% 3 = 0",
        "DELETE FROM orders WHERE id %% 5 = 0",
    )
    for change in changes:
        for number, db in enumerate(dbs):
            db.execute(change, {"at": 10_000 * number})
        hr.sources.land(source)
        assert mirrored(hr, source) == truth(dbs)
        now = operations(hr, source)
        assert len(set(now)) == len(now) > len(ids)
        assert not ids or min(set(now) - set(ids)) > max(ids)
        ids = now
    hr.sources.drop(source)


def test_a_source_of_the_former_version_goes_on_and_numbers_its_changes(
    hr: Headrace, ns: str, urls: list[str], dbs: list[psycopg.Connection]
) -> None:
    """Its logs have no operation ids, its position none either, and slot, mirrors and readers stay."""
    source = f"{ns}_shop"
    hr.sources.create(source, urls[0], ["orders"])
    hr.create_stream_table(f"{ns}.sums", f"SELECT region, sum(amount) AS s FROM {source}.orders GROUP BY region")
    with hr._catalog.reading() as reader:
        kept = reader.source(source)
    [mirror] = kept.mirrors
    as_before(hr, kept)
    dbs[0].execute("INSERT INTO orders VALUES (9, 'r1', 9)")
    hr.refresh()
    [first] = operations(hr, source)
    assert first > 0
    dbs[0].execute("UPDATE orders SET amount = 1 WHERE id = 9")
    hr.refresh()
    assert len(set(operations(hr, source))) == 3
    assert hr.verify(f"{ns}.sums").ok
    with hr._catalog.reading() as reader:
        now = reader.source(source)
    assert (now.options, now.mirrors[0].name, now.mirrors[0].log) == (kept.options, mirror.name, mirror.log)
    assert "nodes" not in (now.position or {})
    hr.drop_stream_table(f"{ns}.sums")
    hr.sources.drop(source)


def as_before(hr: Headrace, source: DatabaseSource) -> None:
    """Make a source's log and position what a former version has left."""
    from headrace.catalog import Publication, SourceMove, Swap
    from headrace.names import LAKE

    [mirror] = source.mirrors
    hr.spark.sql(f"ALTER TABLE {mirror.log.within(STAGING).sql} DROP COLUMN {OPERATION}")
    [shown] = hr._catalog.pointers(LAKE, [mirror.log]).values()
    [staged] = hr._catalog.pointers(STAGING, [mirror.log.within(STAGING)]).values()
    position = {name: of for name, of in (source.position or {}).items() if name != "op"}
    move = SourceMove(source.name, source.position, position)
    swap = Swap(mirror.log, shown.metadata_location, staged=staged.metadata_location)
    hr._catalog.publish(Publication(swaps=(swap,), sources=(move,)))
