"""What a cluster's capture copies again, and what it lands as changes, on nodes that only look like those of Citus.

With a real cluster it is tried in `tests/citus`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kit.citus_stand_in import StandIn, stand_in_servers
from kit.logical import LogicalServer
from kit.mirrored import Follower

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.citus import citus_capture
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.health import server_health
from headrace.sources.postgres.health.server_health import check, health
from headrace.sources.postgres.setup.open_capture import LogCapture
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.snapshot.snapshots import Abandoned
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.wal import slots

Follow = Callable[..., Follower]

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def servers() -> Iterator[list[LogicalServer]]:
    with stand_in_servers(3) as started:
        yield started


@pytest.fixture(scope="module")
def further() -> Iterator[LogicalServer]:
    """A server for a worker that joins."""
    with stand_in_servers(1) as (started,):
        yield started


@pytest.fixture
def nodes(servers: list[LogicalServer]) -> Iterator[StandIn]:
    """A cluster without tables."""
    made = StandIn(servers, f"shop{next(_numbers)}")
    yield made
    made.close()


@pytest.fixture
def follow(nodes: StandIn, tmp_path: Path) -> Iterator[Follow]:
    """Begin to follow tables; what was installed is removed in the end, on every node."""
    begun: list[Follower] = []

    def begin(*tables: str) -> Follower:
        name = f"headrace_n{next(_numbers)}"
        begun.append(Follower(nodes.urls[0], tmp_path / name, *tables, slot=name, way=LogCapture))
        begun[-1].begin()
        return begun[-1]

    yield begin
    for follower in begun:
        follower.capture().remove()
    assert not any(installed(nodes))


def landed(follower: Follower) -> list[tuple[str, bool]]:
    """Land; the mirrors that were written, and whether their tables were copied again."""
    return sorted({(t.name.table, t.replaced) for landing in follower.land() for t in landing.tables})


def distributed(nodes: StandIn, *tables: str) -> None:
    """Tables with 20 rows on each worker."""
    for table in tables:
        nodes.everywhere(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        nodes.distribute(table)
        for group in (1, 2):
            nodes.nodes[group].execute(f"INSERT INTO {table} SELECT g * 2 + {group}, g FROM generate_series(1, 20) g")


def test_changes_of_all_nodes_are_landed(nodes: StandIn, follow: Follow) -> None:
    distributed(nodes, "orders")
    follower = follow("orders")
    assert follower.rows("orders") == nodes.truth("orders")
    nodes.nodes[1].execute("UPDATE orders SET amount = 0 WHERE id < 20")
    nodes.nodes[2].execute("DELETE FROM orders WHERE id > 30")
    assert landed(follower) == [("orders", False)]
    assert follower.rows("orders") == nodes.truth("orders")


def test_a_table_is_emptied_while_another_one_is_altered(nodes: StandIn, follow: Follow) -> None:
    """Both are copied, at one cut: what is in the logs stays there, so that trying again would not help."""
    distributed(nodes, "orders", "beside")
    follower = follow("orders", "beside")
    nodes.everywhere("TRUNCATE beside; ALTER TABLE orders ADD COLUMN b int DEFAULT 7")
    nodes.nodes[1].execute("INSERT INTO beside VALUES (1, 1)")
    nodes.nodes[2].execute("INSERT INTO orders VALUES (100, 1, 2)")
    assert landed(follower) == [("beside", True), ("orders", True)]
    for table in ("orders", "beside"):
        assert follower.rows(table) == nodes.truth(table)


@pytest.mark.parametrize("beside", ["", "TRUNCATE beside", "ALTER TABLE beside ADD COLUMN b int DEFAULT 7"])
def test_a_table_is_altered_and_put_back(nodes: StandIn, follow: Follow, beside: str) -> None:
    """It looks as before, but its log has rows of another shape: it is copied, as from one server."""
    distributed(nodes, "orders", "beside")
    follower = follow("orders", "beside")
    nodes.everywhere("ALTER TABLE orders REPLICA IDENTITY FULL")
    nodes.nodes[1].execute("UPDATE orders SET amount = -1")
    nodes.everywhere(f"ALTER TABLE orders REPLICA IDENTITY DEFAULT; {beside}")
    nodes.nodes[2].execute("UPDATE orders SET amount = -2")
    assert landed(follower) == [*([("beside", True)] if beside else []), ("orders", True)]
    for table in ("orders", "beside"):
        assert follower.rows(table) == nodes.truth(table)
    nodes.nodes[1].execute("UPDATE orders SET amount = -3")
    assert landed(follower) == [("orders", False)]
    assert follower.rows("orders") == nodes.truth("orders")


def test_a_table_gains_columns_after_it_was_altered_and_put_back(nodes: StandIn, follow: Follow) -> None:
    distributed(nodes, "orders", "beside")
    follower = follow("orders", "beside")
    nodes.everywhere("ALTER TABLE orders REPLICA IDENTITY FULL")
    nodes.nodes[1].execute("UPDATE orders SET amount = -1")
    nodes.everywhere("ALTER TABLE orders REPLICA IDENTITY DEFAULT; ALTER TABLE orders ADD COLUMN b int")
    nodes.everywhere("ALTER TABLE beside ADD COLUMN b int")
    nodes.nodes[2].execute("UPDATE orders SET b = 1")
    assert ("orders", True) in landed(follower)
    for table in ("orders", "beside"):
        assert follower.rows(table) == nodes.truth(table)


def bag(nodes: StandIn) -> None:
    """A table without a key, with one shard, which is on the second worker."""
    nodes.everywhere("CREATE TABLE bag (id int, amount bigint); ALTER TABLE bag REPLICA IDENTITY FULL")
    nodes.distribute("bag", 2)
    nodes.nodes[2].execute("INSERT INTO bag SELECT g, g FROM generate_series(1, 5) g")


def test_rows_without_a_key_move_to_another_node(nodes: StandIn, follow: Follow) -> None:
    """Two nodes tell of one row, and neither says who was last."""
    bag(nodes)
    nodes.nodes[1].execute("INSERT INTO bag SELECT g, g FROM generate_series(1, 7) g")  # what the move will bring
    follower = follow("bag")
    nodes.nodes[2].execute("INSERT INTO bag VALUES (6, 6), (7, 7)")
    nodes.move("bag", 2, 1)
    nodes.nodes[1].execute("DELETE FROM bag WHERE id = 7")
    landed(follower)
    assert follower.rows("bag") == nodes.truth("bag")


def test_a_move_of_rows_without_a_key_is_no_change(nodes: StandIn, follow: Follow) -> None:
    bag(nodes)
    nodes.nodes[1].execute("INSERT INTO bag SELECT g, g FROM generate_series(1, 5) g")
    follower = follow("bag")
    nodes.move("bag", 2, 1)
    nodes.nodes[1].execute("DELETE FROM bag WHERE id = 3")
    assert landed(follower) == [("bag", False)]
    assert follower.rows("bag") == nodes.truth("bag")


def test_a_reference_table_whose_copy_on_the_coordinator_goes_away(nodes: StandIn, follow: Follow) -> None:
    distributed(nodes, "orders")
    nodes.everywhere("CREATE TABLE rates (id int PRIMARY KEY); INSERT INTO rates VALUES (1), (2)")
    nodes.refer("rates")
    follower = follow("orders", "rates")
    nodes.withdraw("rates", 0)
    nodes.nodes[1].execute("UPDATE orders SET amount = 0")
    with pytest.raises(UserError, match=r"SOURCE_NOT_READY") as caught:
        follower.land()
    assert "citus_set_coordinator_host" in (caught.value.detail or "")
    assert sum(follower.rows("rates").values()) == 2


def installed(nodes: StandIn) -> list[list[str]]:
    """Slots and publications of every node."""
    listed = (
        "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database() "
        "UNION ALL SELECT pubname::text FROM pg_publication"
    )
    return [sorted(name for (name,) in node.execute(listed).fetchall()) for node in nodes.nodes]


@pytest.mark.parametrize("then", ["dropped", "of one server again"])
def test_a_source_of_one_server_that_fails_to_become_one_of_all(nodes: StandIn, follow: Follow, then: str) -> None:
    """Its position is that of one server still, but the workers have slots that nobody would read."""
    nodes.everywhere("CREATE TABLE orders (id int PRIMARY KEY, amount bigint)")
    nodes.coordinator.execute("INSERT INTO orders VALUES (1, 1)")
    follower = follow("orders")
    nodes.distribute("orders")
    nodes.nodes[2].execute("ALTER TABLE orders RENAME TO aside")  # what goes wrong halfway
    with pytest.raises(EnvironmentFault):
        follower.begin()
    assert all(follower.slot in names for names in installed(nodes)), "it went wrong later"
    if then == "dropped":
        follower.capture().remove()
        assert installed(nodes) == [[], [], []]
    else:
        nodes.coordinator.execute("DELETE FROM pg_dist_partition; DELETE FROM pg_dist_shard")
        follower.begin()
        assert installed(nodes) == [[follower.slot] * 2, [], []]


def test_a_beginning_that_failed_before_publications_had_comments_is_taken_away(nodes: StandIn, follow: Follow) -> None:
    """An earlier version wrote none on the coordinator's."""
    nodes.everywhere("CREATE TABLE orders (id int PRIMARY KEY, amount bigint)")
    follower = follow("orders")
    follower.position, follower.mirrors.tables = {}, {}
    nodes.distribute("orders")
    nodes.nodes[2].execute("ALTER TABLE orders RENAME TO aside")
    with pytest.raises(EnvironmentFault):
        follower.begin()
    nodes.coordinator.execute(f"COMMENT ON PUBLICATION {follower.slot} IS NULL")
    assert all(follower.slot in names for names in installed(nodes)), "it went wrong later"
    follower.capture().remove()
    assert installed(nodes) == [[], [], []]


@pytest.mark.parametrize("landed", [True, False])
def test_a_source_of_one_server_needs_no_other_node_to_be_dropped(nodes: StandIn, follow: Follow, landed: bool) -> None:
    nodes.everywhere("CREATE TABLE plain (id int PRIMARY KEY)")
    follower = follow("plain")
    if not landed:
        follower.position, follower.mirrors.tables = {}, {}
    nodes.everywhere("UPDATE pg_dist_node SET isactive = false WHERE groupid = 2")
    follower.capture().remove()
    assert installed(nodes) == [[], [], []]


@pytest.mark.parametrize("altered", [False, True])
def test_a_new_node_has_rows_at_once(nodes: StandIn, follow: Follow, further: LogicalServer, altered: bool) -> None:
    """Its slot and publication are there before the table is copied that has shards on it."""
    distributed(nodes, "orders", "beside")
    follower = follow("orders", "beside")
    create = "CREATE TABLE {} (id int PRIMARY KEY, amount bigint)"
    nodes.join(further, *(create.format(table) for table in ("orders", "beside")))
    if altered:
        nodes.everywhere("ALTER TABLE beside ADD COLUMN b int DEFAULT 7")
    nodes.nodes[3].execute("INSERT INTO orders SELECT g * 2 + 1, g FROM generate_series(1, 20) g")
    nodes.move("orders", 1, 3)
    nodes.nodes[2].execute("UPDATE beside SET amount = 0")
    assert landed(follower) == [("beside", altered), ("orders", True)]
    nodes.nodes[3].execute("DELETE FROM orders WHERE id < 10")
    assert landed(follower) == [("orders", False)]
    for table in ("orders", "beside"):
        assert follower.rows(table) == nodes.truth(table)


def test_copying_ends_when_it_is_for_nobody(nodes: StandIn, follow: Follow, tmp_path: Path) -> None:
    """An interrupt reaches the thread that waits for several clusters, and none of those that copy."""
    distributed(nodes, "orders")
    follower, ended = follow("orders"), threading.Event()
    ended.set()
    capture = LogCapture(follower.capture()._what, Spool(str(tmp_path / "ended"), ended=ended))
    with pytest.raises(Abandoned):
        capture.renew(follower.position, tuple(follower.names))


def test_a_renamed_table_is_told_at_once(nodes: StandIn, follow: Follow) -> None:
    distributed(nodes, "orders")
    follower = follow("orders")
    nodes.everywhere("ALTER TABLE orders RENAME TO sales")
    (landing,) = follower.land()
    assert [notice.partition(";")[0] for notice in landing.notices] == [
        "Table public.orders is called public.sales now"
    ]
    (landing,) = follower.land()
    assert landing.notices == ()


def while_reading(monkeypatch: pytest.MonkeyPatch, group: int, nodes: StandIn, do: Callable[[int], object]) -> None:
    """Do something once a node is read, with the process of its reader."""
    peek, name = slots.peek, nodes.nodes[group].info.host

    def read(connection: Connection, *arguments: Any, **options: Any) -> Iterator[Any]:
        if connection.info.host == name:
            monkeypatch.setattr(slots, "peek", peek)
            do(connection.info.backend_pid)
        return peek(connection, *arguments, **options)

    monkeypatch.setattr(slots, "peek", read)


def test_a_publication_that_is_altered_while_it_is_read(
    nodes: StandIn, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written meanwhile is in no log: the source stops at the next landing."""
    distributed(nodes, "orders")
    follower, worker = follow("orders"), nodes.nodes[1]

    def alter(_: int) -> None:
        worker.execute(f"ALTER PUBLICATION {follower.slot} DROP TABLE orders")
        worker.execute("UPDATE orders SET amount = -1")
        worker.execute(f"ALTER PUBLICATION {follower.slot} ADD TABLE orders")

    worker.execute("UPDATE orders SET amount = 0")
    while_reading(monkeypatch, 1, nodes, alter)
    follower.land()
    worker.execute("UPDATE orders SET amount = amount")
    with pytest.raises(UserError, match="CAPTURE_REMOVED"):
        follower.land()


def test_a_node_that_is_lost_while_it_is_read_is_named(
    nodes: StandIn, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed(nodes, "orders")
    follower, worker = follow("orders"), nodes.nodes[1]
    worker.execute("UPDATE orders SET amount = 0")
    while_reading(monkeypatch, 1, nodes, lambda pid: worker.execute("SELECT pg_terminate_backend(%s)", (pid,)))
    with pytest.raises(EnvironmentFault, match="SOURCE_LOST") as caught:
        follower.land()
    assert caught.value.message.startswith(f"Node {worker.info.host}:5432 of the Citus cluster: ")
    assert landed(follower) == [("orders", False)]


def test_a_table_that_is_objected_to_is_not_looked_at_further(nodes: StandIn) -> None:
    distributed(nodes, "orders", "beside")
    names = [("public", "orders"), ("public", "beside")]
    found = check(nodes.urls[0], names, parts={names[0]: Part(columns=("none",))})
    told = {name: [c.finding for c in found if c.name == f"public.{name}"] for name in ("orders", "beside")}
    assert told["orders"] == [
        "has no column none that the stream carries",
        "is known by columns that are not among COLUMNS: id",
    ]
    assert told["beside"][0] == "is distributed by id, 2 shards"


@pytest.mark.parametrize("when", ["before", "after a look", "while it is copied"])
def test_a_partition_that_is_emptied_from_a_worker_is_copied_once(
    nodes: StandIn, follow: Follow, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """No message tells of it where publications are by roots, and the coordinator's own partition stays as it is."""
    nodes.everywhere("CREATE TABLE orders (id int, day int, PRIMARY KEY (id, day)) PARTITION BY LIST (day)")
    for day in (1, 2):
        nodes.everywhere(f"CREATE TABLE orders_{day} PARTITION OF orders FOR VALUES IN ({day})")
    nodes.distribute("orders")
    for group in (1, 2):
        rows = f"SELECT g * 2 + {group}, 1 + g % 2 FROM generate_series(1, 20) g"
        nodes.nodes[group].execute(f"INSERT INTO orders {rows}")
    looked, copied = citus_capture.partitions_on, citus_capture.copied

    def emptied() -> None:
        monkeypatch.undo()
        nodes.nodes[1].execute("TRUNCATE orders_1")

    def look(*said: Any) -> dict[str, str]:
        found = looked(*said)
        emptied()
        return found

    def copy(*said: Any) -> Any:
        emptied()
        return copied(*said)

    if when == "while it is copied":
        monkeypatch.setattr(citus_capture, "copied", copy)
    follower = follow("orders")
    if when == "before":
        emptied()
    elif when == "after a look":
        nodes.nodes[2].execute("INSERT INTO orders VALUES (1000, 2)")
        monkeypatch.setattr(citus_capture, "partitions_on", look)
    follower.land()
    nodes.nodes[1].execute("INSERT INTO orders VALUES (1001, 1)")
    follower.land()
    assert follower.rows("orders") == nodes.truth("orders")
    [landing] = follower.land()
    nodes.nodes[2].execute("DELETE FROM orders WHERE day = 2")
    [table] = follower.land()[-1].tables
    assert (landing.keep_position, table.replaced) == (False, False)
    assert follower.rows("orders") == nodes.truth("orders")


def test_a_lost_slot_of_a_node_is_not_behind_by_nothing(nodes: StandIn, follow: Follow) -> None:
    distributed(nodes, "orders")
    follower = follow("orders")
    with psycopg.connect(nodes.urls[1], autocommit=True) as db:
        db.execute("SELECT pg_drop_replication_slot(%s)", (follower.slot,))
    nodes.nodes[1].execute("UPDATE orders SET amount = 0")
    options = {"url": nodes.urls[0], "slot": follower.slot}
    for position in (follower.position, None):  # or the first snapshot was cut off
        look = server_health.look(options, position, keep_from_idling=False)
        assert look is not None
        assert len(look["nodes"]) == 2
    found = health(options, follower.position)
    assert [(n.slot_status, n.lag_bytes is None) for n in found.nodes] == [
        ("reserved", False),
        (None, True),
        ("reserved", False),
    ]
