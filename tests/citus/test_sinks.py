"""Sinks into a cluster, without Spark: every placement equals its stream table after each version, and is told."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from fast.sinks.test_histories import COLUMNS, bag_changes, expected, keyed_changes, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.citus_cluster import Cluster
from kit.sink_rows import FakeStream, Row, deliver, new_sink, options

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.sinks.postgres.placement import FEW
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK

Db = psycopg.Connection[Any]
REVENUE = (Column("region", "string"), Column("total", "decimal(12,2)"))
_numbers = itertools.count(1)

PLACEMENTS = {
    "local": {"placement": "local"},
    "reference": {"placement": "reference"},
    "distributed": {"placement": "distributed"},
}

EXISTING = {
    "managed": "SELECT citus_add_local_table_to_metadata('{}')",
    "in one shard": "SELECT create_distributed_table('{}', NULL)",
    "a reference table": "SELECT create_reference_table('{}')",
    "distributed by a column": "SELECT create_distributed_table('{}', '{}')",
}


def there(db: Db, table: str) -> Counter[tuple[object, ...]]:
    return Counter(db.execute(f"SELECT a, b, x::text FROM {table}").fetchall())


def differs(of: Any, stream: FakeStream) -> tuple[int, int]:
    """What `sink verify` counts."""
    with POSTGRES_SINK.writing(of, lambda _: None) as target:
        found = target.compare(of, stream.columns, stream.delivery("x").rows)
    return found.missing, found.unexpected


steps = st.lists(st.tuples(st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=6), st.booleans()), max_size=5)


@pytest.mark.parametrize("keyed", [False, True], ids=["a bag", "with a key"])
@pytest.mark.parametrize("placement", [*PLACEMENTS, *EXISTING])
def test_a_target_equals_its_stream_table(cluster: Cluster, db: Db, keyed: bool, placement: str) -> None:
    """Through random histories; the key of a distributed table has no NULL."""
    by_column = placement == "distributed by a column" or (placement == "distributed" and keyed)

    @settings(
        max_examples=3 * int(os.environ.get("HEADRACE_EXAMPLES", "1")),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(steps)
    def play(history: list[tuple[list[tuple[Row, int]], bool]]) -> None:
        table, sink = f"t{next(_numbers)}", new_sink()
        if placement in EXISTING:
            db.execute(f"CREATE TABLE {table} (a int, b text, x double precision)")
            if keyed:
                db.execute(f"CREATE UNIQUE INDEX ON {table} (a) NULLS NOT DISTINCT")
            db.execute(EXISTING[placement].format(table, "a"))
        of = options(cluster.url, table, ["a"] if keyed else [], **PLACEMENTS.get(placement, {}))
        stream = FakeStream(COLUMNS, [[]], batch=3)
        counts: dict[str, int] = {}
        by_key: dict[object, Row] = {}
        deliver(of, stream.delivery(sink))
        for entries, written in [*history, ([], True)]:
            if by_column:
                entries = [((row[0] or 0, *row[1:]), weight) for row, weight in entries]
            stream.log.append(keyed_changes(entries, by_key) if keyed else bag_changes(entries, counts))
            if written:
                deliver(of, stream.delivery(sink))
                assert there(db, table) == expected(stream)
        assert differs(of, stream) == (0, 0)
        db.execute(f"DELETE FROM {table} WHERE a = 1")
        db.execute(
            f"INSERT INTO {table} (a, b, x{', headrace_row' if _has_hash(db, table) else ''}) "
            f"VALUES (7, 'x', '-0'{', 5' if _has_hash(db, table) else ''})"
        )
        assert differs(of, stream) != (0, 0)
        deliver(of, stream.delivery(sink, anew=True))
        assert there(db, table) == expected(stream)
        assert differs(of, stream) == (0, 0)
        db.execute(f"DROP TABLE {table}")

    play()


def _has_hash(db: Db, table: str) -> bool:
    query = "SELECT 1 FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'headrace_row'"
    return db.execute(query, (table,)).fetchone() is not None


def many(count: int) -> FakeStream:
    return FakeStream(
        (Column("id", "int"), Column("v", "string")), [[((n, str(n)), 1) for n in range(count)]], batch=50_000
    )


@pytest.mark.parametrize(
    ("key", "said", "count", "placed"),
    [
        (["id"], {}, FEW - 1, "reference"),
        (["id"], {}, FEW, "distributed by id"),
        ([], {}, FEW, "distributed by headrace_row"),
        (["v", "id"], {"distributed_by": "ID", "placement": "auto"}, FEW, "distributed by id"),
        (["v", "id"], {"distributed_by": "id"}, 1, "distributed by id"),
    ],
)
def test_auto_goes_by_how_many_rows_there_are(
    cluster: Cluster, db: Db, key: list[str], said: dict[str, str], count: int, placed: str
) -> None:
    stream, sink, of = many(count), new_sink(), options(cluster.url, "out", key, **said)
    first = deliver(of, stream.delivery(sink))
    assert (first.how, first.rows, first.placement) == ("load", count, placed)
    stream.log.append([((1, "1"), -1), ((1, "new"), 1), ((2, "2"), -1)] if count > 2 else [((5, "new"), 1)])
    assert deliver(of, stream.delivery(sink)).how == "change"
    assert differs(of, stream) == (0, 0)


def test_a_resync_moves_what_headrace_made(cluster: Cluster, db: Db) -> None:
    """With its grants; other columns come along, and leave no dropped ones behind."""
    db.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader")
    stream, sink = many(500), new_sink()
    for said, placed in (
        ({"placement": "local"}, "local"),
        ({"placement": "reference"}, "reference"),
        ({"placement": "distributed"}, "distributed by id"),
        ({"placement": "distributed", "distributed_by": "id", "colocated_with": "beside"}, "distributed by id"),
        ({"placement": "local"}, "local"),
        ({"placement": "distributed"}, "distributed by id"),
    ):
        if "colocated_with" in said:
            db.execute("CREATE TABLE beside (n int PRIMARY KEY)")
            db.execute("SELECT create_distributed_table('beside', 'n', colocate_with := 'none')")
        of = options(cluster.url, "out", ["id"], **said)
        assert deliver(of, stream.delivery(sink, anew=True)).placement == placed
        db.execute("GRANT SELECT ON out TO reader")
        assert differs(of, stream) == (0, 0)
        again = deliver(of, stream.delivery(sink, anew=True))
        assert (again.how, again.inserted, again.deleted) == ("difference", 0, 0)
        if "colocated_with" in said:
            query = "SELECT count(DISTINCT colocation_id) FROM citus_tables WHERE table_name::text IN ('out', 'beside')"
            assert db.execute(query).fetchone() == (1,)
        stream.log.append([((len(stream.log), str(len(stream.log))), -1)])
        deliver(of, stream.delivery(sink))
        assert differs(of, stream) == (0, 0)
    assert db.execute("SELECT has_table_privilege('reader', 'out', 'SELECT')").fetchone() == (True,)
    wider = FakeStream((stream.columns[0], Column("w", "bigint")), [*[[] for _ in stream.log], [((1, 2), 1)]])
    assert deliver(of, wider.delivery(sink, anew=True)).how == "load"
    assert db.execute("SELECT id, w FROM out").fetchall() == [(1, 2)]
    dropped = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'out'::regclass AND attisdropped"
    assert db.execute(dropped).fetchone() == (0,)
    bag, of = new_sink(), options(cluster.url, "bag", placement="reference")
    deliver(of, stream.delivery(bag))
    for placement, placed in (("distributed", "distributed by headrace_row"), ("reference", "reference")):
        of = options(cluster.url, "bag", placement=placement)
        moved = deliver(of, stream.delivery(bag, anew=True))
        assert (moved.how, moved.placement) == ("load", placed)
        stream.log.append([((400, "400"), 1), ((len(stream.log), str(len(stream.log))), -1)])
        deliver(of, stream.delivery(bag))
        assert differs(of, stream) == (0, 0)


def test_sinks_of_a_group_are_one_transaction(cluster: Cluster, db: Db) -> None:
    """Of every placement, in either order; applications that listen are told of all."""
    made = [
        (options(cluster.url, name, key, placement=placement), new_sink(), FakeStream(REVENUE, [[]]), name)
        for name, placement, key in (
            ("g_ref", "reference", ["region"]),
            ("g_dist", "distributed", ["region"]),
            ("g_bag", "distributed", []),
            ("g_local", "local", ["region"]),
            ("g_ref2", "reference", []),
        )
    ]
    db.execute("; ".join(f"LISTEN headrace_{name}" for *_, name in made))
    row = ("EU", Decimal("1.00"))
    for number, order in enumerate((made, made[::-1], made)):
        for _, _, stream, _ in made:
            stream.log.append(
                [(row, 1)] if number != 1 else [(row, -1), (("EU", Decimal("2.00")), 1), (("US", row[1]), 1)]
            )
            if number == 2:
                stream.log[-1] = [(("US", row[1]), -1)]
        with POSTGRES_SINK.writing(made[0][0], lambda _: None) as target:
            for of, sink, stream, name in order:
                target.position(sink)
                target.deliver(of, stream.delivery(sink, name))
        for _, _, stream, name in made:
            assert Counter(db.execute(f"SELECT region, total FROM {name}").fetchall()) == stream.rows_at(stream.version)
    told = {note.channel for note in db.notifies(timeout=5, stop_after=15)}
    assert told == {f"headrace_{name}" for *_, name in made}


MEDDLING = ("UPDATE out SET total = 1 WHERE region = 'EU'", "DELETE FROM out WHERE region = 'EU'")


@pytest.mark.parametrize("key", [["region"], []], ids=["with a key", "a bag"])
@pytest.mark.parametrize("placement", ["reference", "distributed"])
@pytest.mark.parametrize("meddling", MEDDLING)
def test_changes_of_others_are_noticed(cluster: Cluster, db: Db, placement: str, key: list[str], meddling: str) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(cluster.url, "out", key, placement=placement)
    stream.log.append([(("EU", Decimal("80.00")), 1), (("US", Decimal("5.00")), 1)])
    deliver(of, stream.delivery(sink))
    db.execute(meddling)
    before = Counter(db.execute("SELECT * FROM out").fetchall())
    stream.log.append([(("EU", Decimal("80.00")), -1), (("EU", Decimal("9.00")), 1)])
    with pytest.raises(HeadraceError, match="SINK_TARGET_CHANGED"):
        deliver(of, stream.delivery(sink))
    assert Counter(db.execute("SELECT * FROM out").fetchall()) == before
    deliver(of, stream.delivery(sink, anew=True))
    assert differs(of, stream) == (0, 0)
    stream.log.append([(("EU", Decimal("9.00")), -1), (("US", Decimal("5.00")), -1)])
    deliver(of, stream.delivery(sink))
    assert differs(of, stream) == (0, 0)


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "a column that is no part of the key": (
        "",
        {"key": ["region"], "distributed_by": "total"},
        "SINK_PLACEMENT_IMPOSSIBLE",
    ),
    "a column that is not there": ("", {"distributed_by": "nobody"}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "beside nothing": ("", {"key": ["region"], "colocated_with": "nobody"}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "beside another type": (
        "CREATE TABLE beside (n int); SELECT create_distributed_table('beside', 'n')",
        {"key": ["region"], "colocated_with": "beside"},
        "SINK_PLACEMENT_IMPOSSIBLE",
    ),
    "a reference table that is to be distributed": (
        "CREATE TABLE out (region text PRIMARY KEY, total numeric); SELECT create_reference_table('out')",
        {"key": ["region"], "placement": "distributed"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "a local table that is to be a reference table": (
        "CREATE TABLE out (region text PRIMARY KEY, total numeric)",
        {"key": ["region"], "placement": "reference"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "a distributed table that is to be local": (
        "CREATE TABLE out (region text PRIMARY KEY, total numeric); SELECT create_distributed_table('out', 'region')",
        {"key": ["region"], "placement": "local"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "distributed otherwise": (
        "CREATE TABLE out (region text, total numeric); SELECT create_distributed_table('out', 'total')",
        {"placement": "distributed", "distributed_by": "region"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "distributed by what is no part of the key": (
        "CREATE TABLE out (region text, total numeric); SELECT create_distributed_table('out', 'total')",
        {"key": ["region"]},
        "SINK_PLACEMENT_IMPOSSIBLE",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_placements_that_do_not_fit_are_refused_with_the_remedy(cluster: Cluster, db: Db, case: str) -> None:
    statements, said, code = BAD[case]
    for statement in filter(None, statements.split("; ")):
        db.execute(statement)
    of = options(cluster.url, "out", **said)
    with pytest.raises(HeadraceError, match=code) as caught:
        POSTGRES_SINK.check(of, REVENUE, ())
    hint = caught.value.hint or ""
    assert hint
    if code == "SINK_PLACEMENT_DIFFERS":
        for statement in hint.partition("coordinator: ")[2].partition(" Or leave")[0].split(";"):
            if statement.strip():
                db.execute(statement)
        POSTGRES_SINK.check(of, REVENUE, ())
        stream = FakeStream(REVENUE, [[(("EU", Decimal("1.00")), 1)]])
        assert deliver(of, stream.delivery(new_sink())).rows == 1


def test_a_worker_makes_no_table_of_the_cluster(cluster: Cluster) -> None:
    url = cluster.workers[0].url()
    for placement in ("auto", "reference", "distributed"):
        with pytest.raises(HeadraceError, match="SINK_PLACEMENT_IMPOSSIBLE") as caught:
            POSTGRES_SINK.check(options(url, "out", placement=placement), REVENUE, ())
        assert "coordinator" in (caught.value.hint or "")
    POSTGRES_SINK.check(options(url, "out", placement="local"), REVENUE, ())


def test_a_row_without_the_distribution_column_is_refused(cluster: Cluster, db: Db) -> None:
    of, sink, stream = options(cluster.url, "out", ["region"], placement="distributed"), new_sink(), FakeStream(REVENUE)
    stream.log.append([((None, Decimal("1.00")), 1)])
    with pytest.raises(HeadraceError, match="SINK_VALUE_REFUSED") as caught:
        deliver(of, stream.delivery(sink))
    assert "distributed by" in caught.value.message
    stream.log[0] = []
    deliver(of, stream.delivery(sink))
    stream.log.append([((None, Decimal("1.00")), 1)])
    with pytest.raises(HeadraceError, match="SINK_VALUE_REFUSED"):
        deliver(of, stream.delivery(sink))


def test_a_columnar_table_is_refused(cluster: Cluster, db: Db) -> None:
    db.execute("CREATE EXTENSION IF NOT EXISTS citus_columnar")
    db.execute("CREATE TABLE out (region text, total numeric) USING columnar")
    with pytest.raises(HeadraceError, match="SINK_TARGET_UNFIT"):
        POSTGRES_SINK.check(options(cluster.url, "out"), REVENUE, ())
