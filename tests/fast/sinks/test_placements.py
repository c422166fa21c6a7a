"""Where a cluster has the rows of a sink: planned, refused, moved and waited for; a plain server plays Citus."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest
from kit.citus_catalogs import like_a_coordinator
from kit.sink_rows import FakeStream, deliver, new_sink, options

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.sinks.postgres import cluster_transactions
from headrace.sinks.postgres.placement import FEW
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK

COLUMNS = (Column("id", "int"), Column("v", "string"))


@pytest.fixture
def coordinator(url: str, db: psycopg.Connection) -> str:
    like_a_coordinator(db)
    return url


@pytest.mark.parametrize("said", [{"placement": "reference"}, {"placement": "distributed"}, {"distributed_by": "id"}])
def test_a_plain_server_has_no_cluster(url: str, said: dict[str, str]) -> None:
    with pytest.raises(HeadraceError, match="SINK_PLACEMENT_IMPOSSIBLE") as caught:
        POSTGRES_SINK.check(options(url, "out", ["id"], **said), COLUMNS, ())
    assert "not one of a Citus cluster" in caught.value.message


@pytest.mark.parametrize(
    "said",
    [
        {"placement": "elsewhere"},
        {"placement": "reference", "distributed_by": "id"},
        {"placement": "local", "colocated_with": "x"},
        {"placement": "distributed", "colocated_with": "a.b.c"},
    ],
)
def test_what_means_nothing_is_refused(said: dict[str, str]) -> None:
    with pytest.raises(HeadraceError, match=r"INVALID_OPTION|INVALID_NAME"):
        options("postgresql://db/x", "out", ["id"], **said)


BAD = {
    "a column that is no part of the key": ("", {"distributed_by": "v"}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "a column that is not there": ("", {"distributed_by": "nobody"}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "beside no table": ("", {"colocated_with": "nobody"}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "beside another type": (
        "CREATE TABLE b (n text); SELECT create_distributed_table('b', 'n')",
        {"colocated_with": "b"},
        "SINK_PLACEMENT_IMPOSSIBLE",
    ),
    "on a worker": ("UPDATE pg_catalog.pg_dist_local_group SET groupid = 2", {}, "SINK_PLACEMENT_IMPOSSIBLE"),
    "local, not reference": (
        "CREATE TABLE out (id int PRIMARY KEY, v text)",
        {"placement": "reference"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "reference, not local": (
        "CREATE TABLE out (id int PRIMARY KEY, v text); SELECT create_reference_table('out')",
        {"placement": "local"},
        "SINK_PLACEMENT_DIFFERS",
    ),
    "by what is no part of the key": (
        "CREATE TABLE out (id int PRIMARY KEY, v text); SELECT create_distributed_table('out', 'v')",
        {},
        "SINK_PLACEMENT_IMPOSSIBLE",
    ),
    "by ranges": (
        "CREATE TABLE out (id int PRIMARY KEY, v text); "
        "INSERT INTO pg_catalog.pg_dist_partition VALUES ('out', 'r', 'id', 3, 's')",
        {},
        "SINK_TARGET_UNFIT",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_placement_that_cannot_be_is_refused(coordinator: str, db: psycopg.Connection, case: str) -> None:
    statements, said, code = BAD[case]
    if statements:
        db.execute(statements)
    with pytest.raises(HeadraceError, match=code) as caught:
        POSTGRES_SINK.check(options(coordinator, "out", ["id"], **said), COLUMNS, ())
    assert caught.value.hint
    if code == "SINK_PLACEMENT_DIFFERS":  # the hint is what has to be run
        db.execute(caught.value.hint.partition("coordinator: ")[2].partition(" Or leave")[0])
        POSTGRES_SINK.check(options(coordinator, "out", ["id"], **said), COLUMNS, ())


def test_auto_goes_by_rows_and_a_resync_moves(coordinator: str, db: psycopg.Connection) -> None:
    def many(rows: int) -> FakeStream:
        return FakeStream(COLUMNS, [[((n, str(n)), 1) for n in range(rows)]], batch=50_000)

    stream, sink, of = many(FEW - 1), new_sink(), options(coordinator, "out", ["id"])
    assert deliver(of, stream.delivery(sink)).placement == "reference"
    stream.log.append([((FEW, "more"), 1)])
    assert deliver(of, stream.delivery(sink)).placement == "reference", "only a resync moves"
    moved = deliver(of, stream.delivery(sink, anew=True))
    assert (moved.how, moved.placement, moved.rows) == ("load", "distributed by id", FEW)
    bag, few = new_sink(), many(3)
    for placement, placed, columns in (
        ("local", "local", 2),
        ("distributed", "distributed by headrace_row", 3),
        ("reference", "reference", 2),
    ):
        of = options(coordinator, "bag", placement=placement)
        assert deliver(of, few.delivery(bag, anew=True)).placement == placed
        few.log.append([((0, "0"), 1)])
        assert deliver(of, few.delivery(bag)).how == "change"
        assert Counter(db.execute("SELECT id, v FROM bag").fetchall()) == few.rows_at(few.version)
        query = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'bag'::regclass AND attnum > 0 AND NOT attisdropped"
        assert db.execute(query).fetchone() == (columns,)


@pytest.mark.parametrize("placement", ["reference", "distributed"])
def test_a_key_of_another_type_is_unique_after_a_resync(
    coordinator: str, db: psycopg.Connection, placement: str
) -> None:
    stream, sink = FakeStream(COLUMNS, [[((1, "x"), 1)]]), new_sink()
    of = options(coordinator, "out", ["v"], placement=placement)
    deliver(of, stream.delivery(sink))
    other = FakeStream((Column("id", "bigint"), Column("v", "bigint")), [[], [((1, 5), 1), ((2, 6), 1)]])
    done = deliver(of, other.delivery(sink, anew=True))
    assert (done.how, done.rows) == ("load", 2)
    other.log.append([((1, 5), -1), ((7, 5), 1)])
    deliver(of, other.delivery(sink))
    assert Counter(db.execute("SELECT id, v FROM out").fetchall()) == other.rows_at(2)


def test_nothing_is_read_before_every_node_has_committed(
    coordinator: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node has prepared counts once its coordinator has decided it; others' transactions are not waited for."""
    monkeypatch.setattr(cluster_transactions, "PATIENCE", 0.2)
    stream, sink, of = FakeStream(COLUMNS, [[], [((1, "x"), 1)]]), new_sink(), options(coordinator, "out", ["id"])
    deliver(of, stream.delivery(sink, version=0))
    db.execute("""UPDATE pg_catalog.nodes_of_test SET result = '["citus_0_7_1_0"]'""")
    db.execute("INSERT INTO pg_catalog.pg_dist_transaction VALUES (1, 'citus_0_7_1_0')")
    with pytest.raises(HeadraceError, match="SINK_BUSY") as caught:
        deliver(of, stream.delivery(sink))
    assert caught.value.retryable
    db.execute("UPDATE pg_catalog.nodes_of_test SET success = false, result = 'no connection'")
    with pytest.raises(HeadraceError, match="SINK_LOST"):
        deliver(of, stream.delivery(sink))
    db.execute("UPDATE pg_catalog.nodes_of_test SET success = true, result = '[]'")
    assert deliver(of, stream.delivery(sink)).rows == 1
    db.execute("""UPDATE pg_catalog.nodes_of_test SET result = '["citus_0_8_1_0"]'""")
    stream.log.append([((2, "y"), 1)])
    assert deliver(of, stream.delivery(sink)).rows == 2


def test_a_hash_that_is_not_its_rows_is_mended_by_a_resync(coordinator: str, db: psycopg.Connection) -> None:
    stream, sink, of = (
        FakeStream(COLUMNS, [[((1, "x"), 2), ((2, "y"), 1)]]),
        new_sink(),
        options(coordinator, "out", placement="distributed"),
    )
    deliver(of, stream.delivery(sink))
    db.execute("UPDATE out SET v = 'z' WHERE id = 2; UPDATE out SET headrace_row = 5 WHERE id = 1")
    stream.log.append([((1, "x"), -1)])
    with pytest.raises(HeadraceError, match="SINK_TARGET_CHANGED"):
        deliver(of, stream.delivery(sink))
    deliver(of, stream.delivery(sink, anew=True))
    stream.log.append([((1, "x"), -1), ((2, "y"), -1)])
    deliver(of, stream.delivery(sink))
    assert db.execute("SELECT count(*) FROM out").fetchone() == (0,)
