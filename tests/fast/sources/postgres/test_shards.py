"""Several servers as one source: what they must agree in, and what becomes of those that are down or altered."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.one_statement import parse_statement
from kit.sharded import KeyTwice, MirrorRow, ShardFollower, moved_to, truth
from psycopg.conninfo import conninfo_to_dict

from headrace.catalog import Mirror
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.landing.landing_attempt import changed_mirrors
from headrace.names import LAKE, TableName
from headrace.sources.capture import Landing
from headrace.sources.postgres.postgres_kind import POSTGRES
from headrace.sources.postgres.setup.open_capture import LIMIT, limit_after
from headrace.sources.postgres.shards.shard_agreement import Seen, agreement
from headrace.sources.postgres.snapshot import snapshots
from headrace.sources.postgres.snapshot.snapshots import copied
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.wal import slots as wal_slots
from headrace.sources.postgres.wal import wal_capture
from headrace.sources.source_kind import SourceRequest
from headrace.statements.parsed_statements import CreateSource

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, amount bigint, note text)"


@pytest.fixture
def urls(server: LogicalServer) -> dict[str, str]:
    return {"eu": server.fresh(), "us": server.fresh()}


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[TableName]:
    """The mirrors whose tables were copied from a server's log."""
    found: list[TableName] = []

    def counted(*said: Any) -> dict[TableName, Spooled]:
        found.extend(said[2])
        return copied(*said)

    monkeypatch.setattr(wal_capture, "copied", counted)
    return found


def run(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(sql)


def filled(urls: dict[str, str]) -> None:
    for number, url in enumerate(urls.values()):
        run(url, f"{TABLE}; INSERT INTO orders SELECT g + {10 * number}, g FROM generate_series(1, 3) g")


def slots(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()").fetchone()
    return int((found or (0,))[0])


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("CREATE TABLE orders (id int PRIMARY KEY, amount bigint)", "it has no column note"),
        ("CREATE TABLE orders (id int PRIMARY KEY, amount bigint, note text, more int)", "it also has a column more"),
        (
            "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(9,2), note text)",
            "its column amount is decimal(9,2), not bigint",
        ),
        (
            "CREATE TABLE orders (id int, amount bigint, note text PRIMARY KEY)",
            "its rows are known by (note), not (id)",
        ),
        (
            "CREATE TABLE orders (id int, amount bigint, note text); ALTER TABLE orders REPLICA IDENTITY FULL",
            "its rows are known by no key, not (id)",
        ),
        ("SELECT", "shard us has no such table"),
    ],
)
def test_a_shard_that_is_not_like_the_others_is_refused(
    urls: dict[str, str], tmp_path: Path, other: str, told: str
) -> None:
    run(urls["eu"], TABLE)
    run(urls["us"], other)
    with pytest.raises(UserError) as raised:
        ShardFollower(urls, tmp_path, ["orders"]).begin()
    assert raised.value.code == "SHARDS_DIFFER"
    assert told in raised.value.message
    assert [slots(url) for url in urls.values()] == [0, 0]
    checks = POSTGRES.check(SourceRequest("", ["orders"], {"shards": urls}))
    assert any(not c.ok for c in checks)


def test_the_order_of_columns_does_not_matter_and_the_shard_column_has_a_name(
    urls: dict[str, str], tmp_path: Path
) -> None:
    run(urls["eu"], f"{TABLE}; INSERT INTO orders VALUES (1, 2, 'x')")
    run(urls["us"], "CREATE TABLE orders (note text, amount bigint, id int PRIMARY KEY)")
    run(urls["us"], "INSERT INTO orders VALUES ('y', 4, 3)")
    source = ShardFollower(urls, tmp_path, ["orders"], {"shard_column": "region"})
    source.begin()
    assert source.rows("orders", "id", "amount", "note", "region") == truth(urls, "orders", "id, amount, note")
    run(urls["us"], "UPDATE orders SET amount = 5; INSERT INTO orders VALUES ('z', 1, 9)")
    source.land()
    assert source.rows("orders", "id", "amount", "note", "region") == truth(urls, "orders", "id, amount, note")
    source.capture().remove()
    taken = ShardFollower(urls, tmp_path, ["orders"], {"shard_column": "note"})
    with pytest.raises(UserError, match="has a column note on shard eu already"):
        taken.begin()


def test_one_database_twice_is_refused(server: LogicalServer, tmp_path: Path) -> None:
    url = server.fresh()
    run(url, TABLE)
    for urls in ([url, url], {"a": url, "b": f"{url}&application_name=x"}):
        with pytest.raises(UserError) as raised:
            ShardFollower(urls, tmp_path, ["orders"]).begin()  # type: ignore[arg-type]
        assert raised.value.code == "SHARD_TWICE"
    assert slots(url) == 0


def test_a_shard_that_is_down_holds_back_itself_or_all(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(urls)
    named = {"eu": urls["eu"], "us": "env:HR_US"}
    monkeypatch.setenv("HR_US", urls["us"])
    source = ShardFollower(named, tmp_path / "partial", ["orders"])
    strict = ShardFollower(named, tmp_path / "strict", ["orders"], {"availability": "strict"})
    for follower in (source, strict):
        follower.begin()
    before = strict.rows("orders")
    for url in urls.values():
        run(url, "UPDATE orders SET amount = amount + 100")
    monkeypatch.setenv("HR_US", "postgresql://nobody@127.0.0.1:1/none")
    [landing] = source.land()
    assert {name: (e.code, e.message.startswith("Shard us: ")) for name, e in landing.held.items()} == {
        "us": ("SOURCE_UNREACHABLE", True)
    }
    assert sorted(source.rows("orders", "amount", "__shard")) == [
        *((n, "us") for n in (1, 2, 3)),
        *((n, "eu") for n in (101, 102, 103)),
    ]
    with pytest.raises(HeadraceError, match="Shard us: "):
        strict.land()
    assert strict.rows("orders") == before
    status = POSTGRES.health(source, str(tmp_path))
    assert {name: of["reached"] for name, of in status.figures["shards"].items()} == {"eu": True, "us": False}
    assert status.figures["lag_transactions_at_least"] is False
    monkeypatch.setenv("HR_US", urls["us"])
    for follower in (source, strict):
        assert not follower.land()[-1].held
        assert follower.rows("orders") == truth(urls, "orders")
        follower.capture().remove()
    assert [slots(url) for url in urls.values()] == [0, 0]


def test_a_shard_that_is_down_is_waited_for_once(urls: dict[str, str], tmp_path: Path) -> None:
    """Not by the look after each landing, nor while it rests."""
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    asked = list[str]()

    def away(name: str) -> object:
        asked.append(name)
        raise EnvironmentFault("SOURCE_UNREACHABLE", "It is away.", retryable=True)

    with pytest.MonkeyPatch.context() as patch:
        capture = source.capture()
        for call in ("land", "renew", "begin"):
            patch.setattr(capture._nodes.captures["us"], call, lambda *_: away("land"))
        patch.setattr(capture, "_nodes", replace(capture._nodes, differing=["eu"], look=away))
        capture.resting = {"us": EnvironmentFault("SOURCE_UNREACHABLE", "It was away.", retryable=True)}
        run(urls["eu"], "UPDATE orders SET amount = 9")
        source.publish(capture.land(source.position or {}))
        assert (source.held, asked) == ({"us": "SOURCE_UNREACHABLE"}, ["eu"])
        assert source.rows("orders", "amount", "__shard")[9, "eu"] == 3
    look = POSTGRES.look(source, landed=True)
    assert look is not None
    assert list(look["nodes"]) == ["eu"]
    look = POSTGRES.look(source, landed=False)  # it is held since then, but nobody lands it any more
    assert look is not None
    assert list(look["nodes"]) == ["eu", "us"]
    assert not source.land()[-1].held
    source.capture().remove()


@pytest.mark.parametrize("during", ["landing", "copying"])
def test_an_interrupt_does_not_wait_for_a_server_that_hangs(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    filled(urls)
    follower, hanging = ShardFollower(urls, tmp_path, ["orders"]), threading.Event()
    follower.begin()
    for number, url in enumerate(urls.values(), 1):
        run(url, f"INSERT INTO orders SELECT g, g FROM generate_series({number}000, {number}999) g")

    def hang(connection: psycopg.Connection[Any]) -> None:
        """Have the second server say nothing, and interrupt the wait for both then."""
        if connection.info.dbname == conninfo_to_dict(urls["us"])["dbname"]:
            hanging.set()
            connection.execute("SELECT pg_sleep(25)")
        assert hanging.wait(30)
        raise KeyboardInterrupt

    capture, at, began = follower.capture(), follower.position or {}, time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(wal_slots, "peek", lambda connection, *_, **__: hang(connection))
        patched.setattr(snapshots._Copying, "one", lambda _, connection, *__: hang(connection))
        patched.setattr(snapshots, "PART_PAGES", 1)  # each part is copied by a thread of its own
        with pytest.raises(KeyboardInterrupt):
            capture.land(at) if during == "landing" else capture.renew(at, [m.name for m in follower.mirrors])
    assert time.monotonic() - began < 15
    assert not follower.land()[-1].held
    assert follower.rows("orders") == truth(urls, "orders")


def test_a_shard_that_is_down_does_not_stop_the_source_with_another_that_must_be_copied(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever shard comes first: the source stops where all of them must be copied again."""
    filled(urls)
    monkeypatch.setenv("HR_EU", urls["eu"])
    source = ShardFollower({"us": urls["us"], "eu": "env:HR_EU"}, tmp_path, ["orders"])
    source.begin()
    lost = {name: f"SELECT pg_drop_replication_slot('{of['slot']}')" for name, of in source.options["nodes"].items()}
    run(urls["us"], lost["us"])
    held = source.land()[-1].held["us"]
    assert held.code == "SLOT_LOST"
    assert "is stopped" not in held.message
    assert "`headrace source resnapshot s --shard us`" in (held.hint or "")
    monkeypatch.setenv("HR_EU", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(HeadraceError, match="Shard eu: ") as raised:
        source.land()
    assert raised.value.code == "SOURCE_UNREACHABLE"
    monkeypatch.setenv("HR_EU", urls["eu"])
    assert list(source.land()[-1].held) == ["us"]
    run(urls["eu"], lost["eu"])
    with pytest.raises(HeadraceError) as raised:
        source.land()
    assert raised.value.code in POSTGRES.stopping
    source.capture().remove()


def test_a_table_that_is_altered_on_one_shard_waits_for_the_other(urls: dict[str, str], tmp_path: Path) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    alter = "ALTER TABLE orders ADD more int; INSERT INTO orders (id, more) VALUES ({}, 7)"
    run(urls["eu"], alter.format(7))
    run(urls["us"], "DELETE FROM orders WHERE id = 11")
    [landing] = source.land()
    assert [(name, error.code) for name, error in landing.held.items()] == [("eu", "NODES_DIFFER")]
    assert "it also has a column more" in landing.held["eu"].message
    assert {row[0] for row in source.rows("orders")} == {1, 2, 3, 12, 13}
    run(urls["us"], alter.format(17))
    assert not source.land()[-1].held
    listed = "id, amount, note, more"
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    source.capture().remove()


@pytest.mark.parametrize("way", ["wal", "trigger"])
def test_a_table_altered_on_one_shard_is_not_copied_again_and_again(
    urls: dict[str, str], tmp_path: Path, copies: list[TableName], way: str
) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"], {"capture": way})
    source.begin()
    before, listed = len(copies), "id, amount, note"
    alter = "ALTER TABLE orders ALTER amount TYPE numeric(12, 2)"
    run(urls["eu"], f"{alter}; UPDATE orders SET amount = 0.5 WHERE id = 1")
    told = set()
    for number in range(4):
        run(urls["us"], f"UPDATE orders SET amount = {number} WHERE id = 11")
        [landing] = source.land()
        assert {name: error.code for name, error in landing.held.items()} == {"eu": "NODES_DIFFER"}
        told.add(landing.held["eu"].message)
        assert source.rows("orders", "amount")[number,] >= 1, "the other goes on"
    assert len(copies) - before <= 1
    assert len(told) == 1
    run(urls["us"], alter)
    assert not source.land()[-1].held
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    run(urls["us"], alter.replace("12", "13"))
    source.land()
    run(urls["us"], f"{alter}; UPDATE orders SET amount = 7")
    assert not source.land()[-1].held, "the alteration was undone"
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    source.capture().remove()


def test_a_table_altered_on_one_shard_is_not_copied_again_and_again_where_all_wait_for_it(
    urls: dict[str, str], tmp_path: Path, copies: list[TableName]
) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"], {"availability": "strict"})
    source.begin()
    before, alter = len(copies), "ALTER TABLE orders ALTER amount TYPE numeric(12, 2)"
    run(urls["eu"], alter)
    for _ in range(3):
        with pytest.raises(EnvironmentFault, match="on shard eu is not like"):
            source.land()
        assert source.held == {"eu": "NODES_DIFFER"}
    assert len(copies) - before == 1
    run(urls["us"], alter)
    assert not source.land()[-1].held
    listed = "id, amount, note"
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    source.capture().remove()


RENAME = "ALTER TABLE orders RENAME note TO remark"
DROP_AND_ADD = "ALTER TABLE orders DROP note, ADD remark text"


@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
@pytest.mark.parametrize("ways", [(RENAME, DROP_AND_ADD), (DROP_AND_ADD, RENAME)])
def test_a_column_that_got_its_name_in_two_ways_has_the_values_of_each_shard(
    urls: dict[str, str], tmp_path: Path, ways: tuple[str, str], key: str
) -> None:
    listed = "id, amount, remark"
    source = ShardFollower(urls, tmp_path, ["orders"])
    for number, url in enumerate(urls.values()):
        run(url, f"CREATE TABLE orders (id int{key}, amount int, note text); ALTER TABLE orders REPLICA IDENTITY FULL")
        run(url, f"INSERT INTO orders SELECT g + {10 * number}, g, 'n' FROM generate_series(1, 3) g")
    source.begin()
    for url, alter in zip(urls.values(), ways, strict=True):
        run(url, f"{alter}; UPDATE orders SET amount = 7 WHERE amount = 1")
    source.land()
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    for url in urls.values():
        run(url, "DELETE FROM orders WHERE amount = 2; UPDATE orders SET remark = 'm' WHERE amount = 3")
    source.land()
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    source.capture().remove()


@pytest.mark.parametrize("made", ["CREATE TABLE orders (id int PRIMARY KEY, amount bigint, remark text)", RENAME])
def test_a_column_renamed_on_one_shard_keeps_its_values_where_another_is_copied(
    server: LogicalServer, urls: dict[str, str], tmp_path: Path, made: str
) -> None:
    filled(urls)
    for url in urls.values():
        run(url, "UPDATE orders SET note = 'n'")
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    copied, renamed = urls
    listed = "id, amount, remark"
    if made == RENAME:  # and moved to another server, where the table came with that name
        urls[copied] = server.fresh()
        run(urls[copied], "CREATE TABLE orders (id int PRIMARY KEY, amount bigint, remark text)")
        source = moved_to(source, POSTGRES.moved_node("s", source.options, copied, urls[copied]), [copied])
    else:
        run(urls[copied], f"DROP TABLE orders; {made}")
    run(urls[copied], "INSERT INTO orders VALUES (1, 1, 'x')")
    run(urls[renamed], RENAME)
    source.publish(source.capture().renew(source.position or {}, []))
    assert source.rows("orders", listed, "__shard") == truth(urls, "orders", listed)
    source.capture().remove()


def test_a_table_that_is_dropped_on_one_shard_leaves_its_rows(urls: dict[str, str], tmp_path: Path) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    run(urls["us"], "DROP TABLE orders")
    run(urls["eu"], "DELETE FROM orders WHERE id = 1")
    source.land()
    assert {row[0] for row in source.rows("orders")} == {2, 3, 11, 12, 13}
    assert not source.mirrors[0].gone
    run(urls["eu"], "INSERT INTO orders VALUES (4, 4)")
    source.land()
    assert {row[0] for row in source.rows("orders")} == {2, 3, 4, 11, 12, 13}
    run(urls["eu"], "DROP TABLE orders")
    source.land()
    assert source.mirrors[0].gone
    source.capture().remove()


@pytest.mark.parametrize("dropped", [["eu", "us"], ["eu"]])
def test_a_table_that_no_shard_has_stays_gone_when_a_shard_leaves(
    urls: dict[str, str], tmp_path: Path, dropped: list[str]
) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    for name in dropped:
        run(urls[name], "DROP TABLE orders")
    source.land()
    former = source.capture()
    moved_to(source, POSTGRES.without_node("s", source.options, "us"))
    landing = source.publish(source.capture().renew(source.position or {}, []))
    assert {row[0] for row in source.rows("orders")} == {1, 2, 3}
    assert source.mirrors[0].gone
    kept: Any = SimpleNamespace(mirrors=[Mirror(source.mirrors[0].name, source.mirrors[0].name)])
    assert [mirror.gone for mirror in changed_mirrors(kept, landing, {})] == [True]
    former.remove()


@pytest.mark.parametrize("way", ["wal", "trigger"])
def test_a_shard_on_which_a_table_was_dropped_is_copied_again_without_it(
    urls: dict[str, str], tmp_path: Path, way: str
) -> None:
    filled(urls)
    for number, url in enumerate(urls.values()):
        run(url, f"CREATE TABLE lines (id int PRIMARY KEY); INSERT INTO lines VALUES ({number})")
    source = ShardFollower(urls, tmp_path, ["orders", "lines"], {"capture": way})
    source.begin()
    mirrors = [mirror.name for mirror in source.mirrors]

    def renewed() -> Landing:
        return source.publish(source.capture().only(["us"]).renew(source.position or {}, mirrors))

    run(urls["us"], "DROP TABLE orders")
    source.land()
    run(urls["us"], "DELETE FROM lines")
    assert not renewed().held
    assert source.rows("lines") == truth(urls, "lines")
    slot = source.options["nodes"]["us"]["slot"]
    lost = f"SELECT pg_drop_replication_slot('{slot}')" if way == "wal" else f"DROP SCHEMA {slot} CASCADE"
    run(urls["us"], f"{lost}; INSERT INTO lines VALUES (7)")
    assert source.land()[-1].held["us"].code in POSTGRES.stopping
    assert not renewed().held
    assert source.rows("lines") == truth(urls, "lines")
    run(urls["us"], "DROP TABLE lines")
    source.land()
    assert not renewed().held
    run(urls["us"], lost)
    assert not renewed().held
    assert {row[0] for row in source.rows("orders")} == {1, 2, 3, 11, 12, 13}
    assert sorted(source.rows("lines")) == [(0, "eu"), (7, "us")]
    run(urls["us"], f"{TABLE}; INSERT INTO orders VALUES (20, 20)")
    assert not renewed().held
    assert source.rows("orders") == truth(urls, "orders")
    source.capture().remove()


def test_the_same_key_on_two_shards_is_an_error_or_allowed(urls: dict[str, str], tmp_path: Path) -> None:
    for url in urls.values():
        run(url, f"{TABLE}; INSERT INTO orders VALUES (1, 1)")
    source = ShardFollower(urls, tmp_path / "error", ["orders"])
    with pytest.raises(KeyTwice):
        source.begin()
    source.capture().remove()
    both = ShardFollower(urls, tmp_path / "allowed", ["orders"], {"same_key": "allowed"})
    both.begin()
    run(urls["us"], "UPDATE orders SET amount = 5")
    both.land()
    assert both.rows("orders") == truth(urls, "orders")
    assert (both.mirrors[0].details or {})["key"] == ["id", "__shard"]
    both.capture().remove()


def test_statement_of_shards() -> None:
    statement = parse_statement(
        "CREATE SOURCE shop FROM POSTGRES SHARDS ('postgresql://a/x' AS eu CAPTURE TRIGGER, 'postgresql://b/x') "
        "TABLES (public.orders) SHARD COLUMN region WITH (availability = 'strict', same_key = 'allowed')"
    )
    assert isinstance(statement, CreateSource)
    options = POSTGRES.options("shop", statement.request)
    nodes = {name: (of["url"], of["capture"]) for name, of in options["nodes"].items()}
    assert nodes == {"eu": ("postgresql://a/x", "trigger"), "s1": ("postgresql://b/x", "wal")}
    assert [options[name] for name in ("shard_column", "availability", "same_key")] == ["region", "strict", "allowed"]
    assert POSTGRES.address(options) == "eu postgresql://a/x, s1 postgresql://b/x"


@pytest.mark.parametrize(
    ("shards", "said", "code"),
    [
        (["postgresql://u:secret@a/x", "postgresql://b/x"], {}, "SOURCE_URL_INVALID"),
        ({"a-b": "postgresql://a/x"}, {}, "INVALID_NAME"),
        ([], {}, "INVALID_OPTION"),
        ("postgresql://a/x", {}, "INVALID_OPTION"),
        ([3], {}, "INVALID_OPTION"),
        ([{"url": "postgresql://a/x", "capture": "wish"}], {}, "INVALID_OPTION"),
        (["postgresql://a/x"], {"availability": "never"}, "INVALID_OPTION"),
        (["postgresql://a/x"], {"same_key": "maybe"}, "INVALID_OPTION"),
        (["postgresql://a/x"], {"shard_column": "a b"}, "INVALID_NAME"),
        ([{"url": "postgresql://a/x", "name": "n"}, {"url": "postgresql://b/x", "name": "n"}], {}, "SHARD_EXISTS"),
        (["postgresql://a/x", "postgresql://a/x"], {}, "SHARD_TWICE"),
    ],
)
def test_bad_shards_are_refused(shards: object, said: dict[str, object], code: str) -> None:
    with pytest.raises(UserError) as raised:
        POSTGRES.options("shop", SourceRequest("", ["orders"], {"shards": shards, **said}))
    assert raised.value.code == code
    assert "secret" not in str(raised.value)


def test_a_landing_after_a_key_on_two_shards_has_all_there_is() -> None:
    assert limit_after(-1) > LIMIT > limit_after(0)


def test_a_shard_is_left_out_of_what_was_read_already(urls: dict[str, str], tmp_path: Path) -> None:
    """What the others gave is landed without reading it again; a first snapshot needs all."""
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    conflict = EnvironmentFault("KEY_ON_TWO_NODES", "eu and us both have a row.", retryable=True)
    first = source.capture()
    first.begin()
    with pytest.raises(EnvironmentFault, match="Shard us: eu and us both"):
        first.without("us", conflict)
    first.remove()
    source.begin()
    before = source.position
    for url in urls.values():
        run(url, "UPDATE orders SET amount = 0")
    capture = source.capture()
    capture.land(before)
    landing = capture.without("us", conflict)
    assert [(name, error.code) for name, error in landing.held.items()] == [("us", "KEY_ON_TWO_NODES")]
    moved = {name for name, at in landing.position["nodes"].items() if at != before["nodes"][name]}
    assert moved == {"eu"}
    assert {part for t in landing.tables for part in t.parts} == {"eu"}  # type: ignore[attr-defined]
    with pytest.raises(EnvironmentFault, match="Shard eu: "):
        capture.without("eu", conflict)
    capture.clear()
    source.capture().remove()


def test_servers_of_different_versions_are_listed_and_fit(urls: dict[str, str], tmp_path: Path) -> None:
    options = ShardFollower(urls, tmp_path, ["orders"]).options
    found = {name: Seen(version, (name, "5"), {}) for name, version in (("eu", 15), ("us", 18))}
    checks = {check.name: (check.ok, check.finding) for check in agreement(options, found, options["tables"])}
    assert checks["versions"] == (True, "eu: PostgreSQL 15, us: PostgreSQL 18")
    assert checks["databases"][0]


def test_tables_are_added_on_all_shards_or_on_none(urls: dict[str, str], tmp_path: Path) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"])
    source.begin()
    run(urls["eu"], "CREATE TABLE more (id int PRIMARY KEY, __shard text); INSERT INTO more VALUES (1, 'x')")
    before = source.options
    source.options = POSTGRES.with_tables(source.options, ["more"], {})
    added = TableName(LAKE, ("s",), "more")
    source.mirrors.append(MirrorRow(added))
    with pytest.raises(UserError, match="shard us has no such table"):
        source.capture().renew(source.position or {}, [added])
    run(urls["us"], "CREATE TABLE more (id int PRIMARY KEY, __shard text)")
    with pytest.raises(UserError, match="has a column __shard on shard eu already"):
        source.capture().renew(source.position or {}, [added])
    for url in urls.values():
        run(url, "ALTER TABLE more RENAME __shard TO place; UPDATE orders SET amount = 9 WHERE id IN (1, 11)")
    source.publish(source.capture().renew(source.position or {}, [added]))
    assert source.rows("more", "id", "place", "__shard") == truth(urls, "more")
    assert source.rows("orders") == truth(urls, "orders")
    source.options = POSTGRES.without_tables(source.options, ["more"])
    assert source.options == before
    source.mirrors.pop()
    source.capture().tidy()
    assert len(source.land()) == 1
    source.capture().remove()


@pytest.mark.parametrize(
    ("way", "landed"),
    [
        ("wal", True),
        ("trigger", False),
        pytest.param("wal", False, marks=pytest.mark.long),
        pytest.param("trigger", True, marks=pytest.mark.long),
    ],
)
def test_tables_and_shards_are_added_after_tables_were_renamed_and_dropped(
    server: LogicalServer, urls: dict[str, str], tmp_path: Path, way: str, landed: bool
) -> None:
    """Tables are found by identity, and those that are gone are not asked for."""
    filled(urls)
    for number, url in enumerate(urls.values()):
        run(url, "CREATE TABLE lines (id int PRIMARY KEY); CREATE TABLE old (id int PRIMARY KEY)")
        run(url, f"INSERT INTO lines VALUES ({number})")
    source = ShardFollower(urls, tmp_path, ["orders", "lines", "old"], {"capture": way})
    source.begin()
    for url in urls.values():
        run(url, "ALTER TABLE orders RENAME TO sales; CREATE TABLE orders (id int); DROP TABLE old")
        run(url, "CREATE TABLE items (id int PRIMARY KEY); INSERT INTO items VALUES (hashtext(current_database()))")
    run(urls["us"], "DROP TABLE lines")
    if landed:
        source.land()
    source.options = POSTGRES.with_tables(source.options, ["items"], {})
    added = TableName(LAKE, ("s",), "items")
    source.mirrors.append(MirrorRow(added))
    source.publish(source.capture().renew(source.position or {}, [added]))
    assert source.rows("items") == truth(urls, "items")
    urls["asia"] = server.fresh()
    run(urls["asia"], f"{TABLE}; INSERT INTO orders VALUES (99, 9); CREATE TABLE lines (id int PRIMARY KEY)")
    run(urls["asia"], "INSERT INTO lines VALUES (99)")
    moved_to(source, POSTGRES.with_node("s", source.options, {"url": urls["asia"], "name": "asia"}))
    with pytest.raises(UserError, match="items shard asia has no such table"):
        source.capture().renew(source.position or {}, [])
    run(urls["asia"], "CREATE TABLE items (id int PRIMARY KEY)")
    source.publish(source.capture().renew(source.position or {}, []))
    run(urls["asia"], "ALTER TABLE orders RENAME TO sales")
    source.land()
    assert source.rows("orders") == truth(urls, "sales")
    assert sorted(source.rows("lines")) == [(0, "eu"), (1, "us"), (99, "asia")]
    former = source.capture()
    moved = {**urls, "us": server.fresh()}
    run(moved["us"], f"{TABLE}; INSERT INTO orders VALUES (5, 5); CREATE TABLE items (id int PRIMARY KEY)")
    moved_to(source, POSTGRES.moved_node("s", source.options, "us", moved["us"]), ["us"])
    source.publish(source.capture().renew(source.position or {}, []))
    run(moved["us"], "ALTER TABLE orders RENAME TO sales")
    source.land()
    assert source.rows("orders") == truth(moved, "sales")
    source.publish(source.capture().begin())
    assert source.rows("orders") == truth(moved, "sales")
    assert {m.name.table for m in source.mirrors if m.gone} == {"old"}
    former.remove()
    source.capture().remove()


@pytest.mark.parametrize("named", [True, False])
def test_shards_that_are_declared(named: bool) -> None:
    urls = {"s1": "postgresql://a/x", "s2": "postgresql://b/x"}
    said = {"shards": urls if named else list(urls.values()), "shard_column": "at"}
    options = POSTGRES.options("shop", SourceRequest("", ["orders"], said))
    kept = ShardFollower.__new__(ShardFollower)
    kept.name, kept.options, kept.position, kept.mirrors = "shop", options, None, []  # type: ignore[assignment]
    assert POSTGRES.changes(kept, SourceRequest("", ["orders", "more"], said)).added == ("more",)
    others = (
        {**said, "shards": ["postgresql://a/x"]},
        {**said, "shards": {"s1": "postgresql://b/x", "s2": "postgresql://a/x"}},
        {**said, "shard_column": "region"},
        {**said, "availability": "strict"},
        {"shard_column": "at"},
    )
    for other in others:
        with pytest.raises(UserError) as raised:
            POSTGRES.changes(kept, SourceRequest("postgresql://a/x", ["orders"], other))
        assert raised.value.code == "SOURCE_DIFFERS"


def test_a_shard_that_is_added_or_moved_has_a_slot_that_fails_over_as_the_others_have() -> None:
    shards = {"eu": {"url": "postgresql://a/x"}, "us": {"url": "postgresql://b/x", "capture": "trigger"}}
    for failover in (True, False):
        said = {"shards": shards, "failover": failover}
        options = POSTGRES.options("shop", SourceRequest("", ["orders"], said))
        options = POSTGRES.with_node("shop", options, {"url": "postgresql://c/x", "name": "as"})
        for node in ("eu", "us"):
            options = POSTGRES.moved_node("shop", options, node, f"postgresql://{node}/x")
        assert {n: (of["capture"], of["failover"]) for n, of in options["nodes"].items()} == {
            "eu": ("wal", failover),
            "us": ("trigger", False),
            "as": ("wal", failover),
        }


@pytest.mark.parametrize("said", [{"failover": True}, {"capture": "trigger"}, {"capture": "auto"}])
def test_shards_are_captured_as_declared(said: dict[str, object]) -> None:
    shards = [{"url": "postgresql://a/x"}, {"url": "postgresql://b/x", "capture": "auto"}]
    whole = {"shards": shards, **said}
    kept = ShardFollower.__new__(ShardFollower)
    kept.name, kept.position, kept.mirrors = "shop", None, []
    kept.options = POSTGRES.options("shop", SourceRequest("", ["orders"], whole))
    assert not POSTGRES.changes(kept, SourceRequest("", ["orders"], whole)).added
    other = {**whole, "shards": [shards[0], {**shards[1], "capture": "wal"}]}
    for wanted in ({**whole, "failover": not whole.get("failover", False)}, other):
        with pytest.raises(UserError) as raised:
            POSTGRES.changes(kept, SourceRequest("", ["orders"], wanted))
        assert raised.value.code == "SOURCE_DIFFERS"


def test_one_shard_that_is_captured_otherwise_is_told_to_be_added_again(tmp_path: Path) -> None:
    """A source that is made anew is copied whole, and must not be read meanwhile."""
    url = "postgresql://{}/x".format

    def hint(kept: list[dict[str, str]], wanted: list[dict[str, str]], **said: bool) -> str:
        source = ShardFollower({"x": url("x")}, tmp_path, ["orders"])
        source.options = POSTGRES.options("s", SourceRequest("", ["orders"], {"shards": kept}))
        source.options["nodes"]["s1"]["failover"] = said.pop("first", False)
        with pytest.raises(UserError, match="SOURCE_DIFFERS") as raised:
            POSTGRES.changes(source, SourceRequest("", ["orders"], {"shards": wanted, **said}))
        return raised.value.hint or ""

    a, b = {"url": url("a")}, {"url": url("b")}
    trigger = {**b, "capture": "trigger"}
    assert "DROP SHARD s2, then ADD SHARD '…' AS s2 CAPTURE TRIGGER)" in hint([a, b], [a, trigger])
    assert "DROP SHARD s1, then ADD SHARD '…' AS s1 CAPTURE WAL)" in hint([a, b], [a, b], first=True)
    assert "DROP SHARD s2, then ADD SHARD '…' AS s2 CAPTURE WAL)" in hint([a, b], [a, b], first=True, failover=True)
    for only in (hint([b], [trigger]), hint([a, b], [a, b], failover=True)):
        assert "drop it and declare it anew" in only


def test_parts_of_tables_are_not_for_a_shard_that_is_captured_in_both_ways() -> None:
    shards = [{"url": "postgresql://a/x"}, {"url": "postgresql://b/x", "capture": "auto"}]
    with pytest.raises(UserError, match="are for capture in one way"):
        POSTGRES.options("shop", SourceRequest("", ["orders WHERE (id > 1)"], {"shards": shards}))


@pytest.mark.parametrize("way", ["wal", "trigger"])
def test_a_shard_whose_capture_was_removed_is_copied_again_alone(
    urls: dict[str, str], tmp_path: Path, way: str
) -> None:
    filled(urls)
    source = ShardFollower(urls, tmp_path, ["orders"], {"capture": way})
    source.begin()
    slot = source.options["nodes"]["us"]["slot"]
    gone = f"SELECT pg_drop_replication_slot('{slot}')" if way == "wal" else f"DROP SCHEMA {slot} CASCADE"
    run(urls["us"], f"{gone}; DELETE FROM orders WHERE id = 11")
    run(urls["eu"], "DELETE FROM orders WHERE id = 1")
    [landing] = source.land()
    code = landing.held["us"].code
    assert code == ("SLOT_LOST" if way == "wal" else "CAPTURE_REMOVED")
    assert code in POSTGRES.stopping
    assert {row[0] for row in source.rows("orders")} == {2, 3, 11, 12, 13}
    mirrors = [mirror.name for mirror in source.mirrors]
    landing = source.publish(source.capture().only(["us"]).renew(source.position or {}, mirrors))
    assert not landing.held
    assert source.rows("orders") == truth(urls, "orders")
    run(urls["us"], "UPDATE orders SET amount = 77")
    source.land()
    assert source.rows("orders") == truth(urls, "orders")
    source.capture().remove()
