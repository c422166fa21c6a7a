"""The cut protocol and what is read of Citus' catalogs, against databases that have the tables of it that matter.

With a real cluster they are tried in `tests/citus`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import psycopg
import pytest
from fast.sources.postgres import messages
from kit.logical import LogicalServer

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.citus import cuts
from headrace.sources.postgres.citus.cluster import cluster
from headrace.sources.postgres.citus.cluster_catalog import LOCAL, nodes, placements
from headrace.sources.postgres.citus.cuts import initiator, take_cut
from headrace.sources.postgres.citus.node_log import narrower
from headrace.sources.postgres.citus.placement_changes import moved, not_followed, touched_twice
from headrace.sources.postgres.connection import Connection, at_node, connected
from headrace.sources.postgres.wal.followed_ddl import widened
from headrace.spark.interrupts import raise_in_thread

CATALOG = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_transaction (groupid int, gid text);
CREATE TABLE pg_catalog.pg_dist_node (groupid int, nodename text, nodeport int, isactive bool, hasmetadata bool,
    metadatasynced bool, noderole text DEFAULT 'primary', nodecluster text DEFAULT 'default');
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", partkey text, repmodel "char");
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid int8);
CREATE TABLE pg_catalog.pg_dist_placement (
    shardid int8, groupid int, placementid int8, shardstate int, shardlength int8);
CREATE FUNCTION pg_catalog.shard_name(regclass, int8) RETURNS text LANGUAGE sql AS
    $$ SELECT CASE n.nspname WHEN 'public' THEN '' ELSE quote_ident(n.nspname) || '.' END
        || quote_ident(relname || '_' || $2)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = $1 $$;
CREATE FUNCTION pg_catalog.column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS $$ SELECT $2 $$;
"""


@pytest.fixture
def urls(server: LogicalServer) -> dict[int, str]:
    """The coordinator and two workers, each a database."""
    found = {group: server.fresh() for group in range(3)}
    for url in found.values():
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(CATALOG)
    return found


@pytest.fixture
def connections(urls: dict[int, str]) -> Iterator[dict[int, Connection]]:
    with ExitStack() as stack:
        yield {group: stack.enter_context(connected(url)) for group, url in urls.items()}


def test_a_cut_marks_every_log_and_leaves_nothing(connections: dict[int, Connection]) -> None:
    first = take_cut(connections, "s:1", lambda c: c.info.dbname)
    second = take_cut(connections, "s:2", lambda c: c.info.dbname)
    assert first.seen == connections[0].info.dbname, "the coordinator is asked"
    assert all(first.marks[group] < second.marks[group] for group in connections)
    for connection in connections.values():
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        held = "SELECT FROM pg_locks WHERE relation = 'pg_catalog.pg_dist_transaction'::regclass"
        assert connection.execute(held).fetchone() is None


@pytest.mark.parametrize("held", [0, 2])
def test_whoever_commits_is_not_waited_for_long(
    connections: dict[int, Connection], urls: dict[int, str], held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts, "_LOCK", cuts._LOCK.replace("'1s'", "'20ms'"))
    with psycopg.connect(urls[held]) as writer:
        writer.execute("INSERT INTO pg_dist_transaction VALUES (1, 'citus_0_1_2_3')")
        with pytest.raises(EnvironmentFault, match="SOURCE_BUSY") as caught:
            take_cut(connections, "s:1", lambda _: None, attempts=2, pause=0)
        assert caught.value.retryable
        with psycopg.connect(urls[0], autocommit=True) as other:  # nobody else waits for us afterwards
            other.execute("SET lock_timeout = '50ms'; INSERT INTO pg_dist_transaction VALUES (2, 'x')")
    take_cut(connections, "s:1", lambda _: None)


def test_a_transaction_that_is_decided_and_not_everywhere_makes_a_cut_void(
    connections: dict[int, Connection], urls: dict[int, str]
) -> None:
    gid = "citus_0_4711_17_1"
    with psycopg.connect(urls[1], autocommit=True) as worker, psycopg.connect(urls[0], autocommit=True) as db:
        worker.execute("CREATE TABLE rows (id int)")
        worker.execute("BEGIN; INSERT INTO rows VALUES (1)")
        worker.execute(f"PREPARE TRANSACTION '{gid}'")
        take_cut(connections, "s:1", lambda _: None)  # not decided yet: it belongs to the next cut, whole
        db.execute("INSERT INTO pg_dist_transaction VALUES (1, %s)", (gid,))
        with pytest.raises(EnvironmentFault, match=gid):
            take_cut(connections, "s:2", lambda _: None, attempts=2, pause=0)
        worker.execute(f"COMMIT PREPARED '{gid}'")
    take_cut(connections, "s:3", lambda _: None)


def test_a_node_that_ended_our_transaction_makes_a_cut_void(
    connections: dict[int, Connection], urls: dict[int, str]
) -> None:
    """Its lock was gone before the others' marks were written, perhaps."""

    def kill(_: Connection) -> None:
        with psycopg.connect(urls[1], autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(%s)", (connections[1].info.backend_pid,))

    with pytest.raises(psycopg.OperationalError):
        take_cut(connections, "s:1", kill)


@pytest.mark.parametrize("hanging", [0, 2])
def test_an_interrupt_does_not_wait_for_a_node_that_hangs(
    connections: dict[int, Connection], monkeypatch: pytest.MonkeyPatch, hanging: int
) -> None:
    """As of a command that runs in a thread: it comes between two instructions."""
    ended = list[BaseException]()
    silent = f"CASE WHEN current_database() = '{connections[hanging].info.dbname}' THEN pg_sleep(30) END"
    monkeypatch.setattr(cuts, "_MARK", f"{cuts._MARK}, {silent} IS NULL")

    def command() -> None:
        try:
            take_cut(connections, "s:1", lambda _: None)
        except BaseException as error:
            ended.append(error)

    thread, begun = threading.Thread(target=command), time.monotonic()
    thread.start()
    pid = connections[hanging].info.backend_pid
    with psycopg.connect(connections[hanging].info.dsn, autocommit=True) as db:
        sleeps = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        while db.execute(sleeps, (pid,)).fetchone() is None:
            assert time.monotonic() - begun < 20
            time.sleep(0.05)
    raise_in_thread(thread.ident or 0)
    thread.join()
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert time.monotonic() - begun < 15


def test_transactions_are_named_after_the_node_that_began_them() -> None:
    assert [initiator(gid) for gid in ("citus_12_9_4_0", "citus_x_1", "pgt_12_1_1")] == [12, -1, -1]


def test_placements_are_told_apart(urls: dict[int, str]) -> None:
    with psycopg.connect(urls[0], autocommit=True) as db:
        db.execute('CREATE SCHEMA "My"; CREATE TABLE "My".d (id int); CREATE TABLE r (id int); CREATE TABLE m (id int)')
        db.execute("CREATE TABLE l (id int)")
        db.execute(
            "INSERT INTO pg_dist_partition VALUES ('\"My\".d', 'h', 'id', 's'), ('r', 'n', NULL, 't'), "
            "('m', 'n', NULL, 's'); "
            "INSERT INTO pg_dist_shard VALUES ('\"My\".d', 1), ('\"My\".d', 2), ('r', 3), ('m', 4); "
            "INSERT INTO pg_dist_placement VALUES (1, 1, 10, 1, 0), (2, 2, 11, 1, 0), (3, 0, 12, 1, 0), "
            "(3, 1, 13, 1, 0), (4, 0, 14, 1, 0), (2, 1, 15, 4, 0)"
        )
        names = {name: oid for name, oid in db.execute("SELECT relname, oid::bigint FROM pg_class WHERE relkind = 'r'")}
    with connected(urls[0]) as connection:
        found = placements(connection, [names[name] for name in "drml"])
    d, r, m, local = (found[names[name]] for name in "drml")
    assert (d.kind, d.column, [(s.number, s.group, s.relation) for s in d.captured]) == (
        "distributed",
        "id",
        [(1, 1, '"My".d_1'), (2, 2, '"My".d_2')],
    )
    assert (r.kind, [(s.group, s.relation) for s in r.captured]) == ("reference", [(0, '"public".r_3')])
    assert (m.kind, [s.group for s in m.captured], local) == ("managed", [0], LOCAL)
    assert (d.mark, r.mark, local.mark) == ("distributed 1:1:10 2:2:11", "reference 3:0:12", "local")


def test_nodes_are_found_and_disabled_ones_refused(urls: dict[int, str]) -> None:
    with psycopg.connect(urls[0], autocommit=True) as db:
        db.execute("INSERT INTO pg_dist_node VALUES (2, 'b', 2, false, true, true), (0, 'a', 1, true, true, false)")
    url = at_node(urls[0], options="-c citus.cluster_name=default")
    with connected(url) as connection:
        assert [(n.group, str(n), n.active, n.synced) for n in nodes(connection)] == [
            (0, "a:1", True, False),
            (2, "b:2", False, True),
        ]
    with pytest.raises(UserError, match=r"SOURCE_NOT_READY.*b:2"), cluster(url):
        pass


def test_other_nodes_are_reached_as_the_coordinator_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP", "postgresql://me:secret@10.0.0.1,10.0.0.2:1,2/shop?hostaddr=1.2.3.4&sslmode=require")
    parts = psycopg.conninfo.conninfo_to_dict(at_node("env:SHOP", "w1", 5433, "-c a=b"))
    assert parts == {
        "user": "me",
        "password": "secret",
        "host": "w1",
        "port": "5433",
        "dbname": "shop",
        "sslmode": "require",
        "options": "-c a=b",
    }


BEFORE = {"1": "distributed 7:1:10 8:2:11", "2": "local", "3": "reference 9:0:1"}


@pytest.mark.parametrize(
    ("now", "same_nodes", "copied"),
    [
        (BEFORE, True, set()),
        (BEFORE, False, set()),
        ({**BEFORE, "1": "distributed 7:2:12 8:2:11"}, True, set()),  # a plain move
        ({**BEFORE, "1": "distributed 7:2:12 8:2:11"}, False, {"1"}),  # perhaps by way of a node that had no slot
        ({**BEFORE, "1": "distributed 7:1:13 8:2:11"}, True, {"1"}),  # away and back
        ({**BEFORE, "1": "distributed 21:1:14 22:2:15 8:2:11"}, True, {"1"}),  # split
        ({**BEFORE, "1": "distributed 7:1:10"}, True, {"1"}),
        ({**BEFORE, "2": "distributed 30:1:20"}, True, {"2"}),
        ({**BEFORE, "4": "local"}, True, {"4"}),
    ],
)
def test_which_tables_are_copied_when_rows_move(now: dict[str, str], same_nodes: bool, copied: set[str]) -> None:
    assert not_followed(BEFORE, now, same_nodes=same_nodes) == copied
    assert copied <= moved(BEFORE, now)


def test_a_table_that_only_gained_columns_is_followed() -> None:
    before = replace(messages.table(columns="id a"), filenode=1)
    for columns, filenode, filled, wider in (
        ("id a more", 1, (), True),
        ("id a more", 1, (3,), False),  # with a default: old rows have a value of it
        ("id a more", 2, (), False),  # rewritten
        ("id a", 1, (), False),
        ("id b more", 1, (), False),  # renamed, too
        ("id", 1, (), False),
    ):
        now = replace(messages.table(columns=columns), filenode=filenode)
        assert widened(SimpleNamespace(table=now, filled=filled), before) is wider, columns  # type: ignore[arg-type]
        if wider:
            assert narrower(now, before) == before


def test_a_key_that_two_nodes_touched() -> None:
    assert not touched_twice([{(b"1",), (b"2",)}, {(b"3",)}, set()])
    assert touched_twice([{(b"1",)}, set(), {(b"2",), (b"1",)}])


def test_rows_without_a_known_key_that_two_nodes_touched() -> None:
    assert not touched_twice([])
    assert not touched_twice([None])
    assert touched_twice([None, None])
    assert touched_twice([{(b"1",)}, None])
