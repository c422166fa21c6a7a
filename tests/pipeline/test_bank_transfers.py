"""Money moves between accounts while readers poll pinned states: no transfer is ever seen half, anywhere.

Through capture, two mirrors, two stream tables over both and the diamond they make; also while one table is taken anew.
One reader is Spark, another a process of its own that reads what is published, and was, by PyIceberg. Capture by
triggers is tried in `make test-long`.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, ExitStack

import psycopg
import pytest
from kit import pg_bank
from kit.background import in_background
from kit.logical import LogicalServer, logical_server
from kit.long_tests import LONG
from kit.pg_bank import TABLES, TOTAL, Transfers

from headrace.api.facade import Headrace
from headrace.events import Event, RefreshFailed
from headrace.names import LAKE, TableName

LOOKS, MOST = 10, 600
"""Looks of Spark, at the least and at the most."""
WAYS_OF_SHARDS = ("wal", "trigger")
WAYS = ("wal", "trigger", "auto") if LONG else ("wal",)


def refreshing(hr: Headrace) -> AbstractContextManager[None]:
    """Land and refresh in a thread without a pause."""

    def refresh(stopping: threading.Event) -> None:
        while not stopping.is_set():
            hr.refresh()

    return in_background(refresh)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_no_transfer_is_ever_seen_half(hr: Headrace, ns: str, server: LogicalServer, way: str) -> None:
    source, url = f"{ns}_bank", server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        pg_bank.create(db)
        hr.sources.create(source, url, TABLES, capture=way)
        both = " UNION ALL ".join(f"SELECT amount FROM {source}.{table}" for table in TABLES)
        sides = {"rich": "amount >= 100", "poor": "amount < 100"}
        for side, condition in sides.items():
            query = f"SELECT amount FROM ({both}) AS b WHERE {condition}"
            hr.create_stream_table(f"{ns}.{side}", query, refresh_mode="DIFFERENTIAL")
        met = " UNION ALL ".join(f"SELECT amount FROM {ns}.{side}" for side in sides)
        hr.create_stream_table(
            f"{ns}.total", f"SELECT sum(amount) AS total FROM ({met}) AS m", refresh_mode="DIFFERENTIAL"
        )
        look = (
            f"SELECT (SELECT sum(amount) FROM ({both})) AS mirrors, (SELECT sum(amount) FROM ({met})) AS sides, "
            f"(SELECT total FROM {ns}.total) AS diamond"
        )
        sums = (
            ([TableName(LAKE, (source,), table) for table in TABLES], "amount"),
            ([TableName(LAKE, (ns,), side) for side in sides], "amount"),
            ([TableName(LAKE, (ns,), "total")], "total"),
        )
        transfers, seen, states = Transfers(url), [], set()
        with transfers.going_on(), pg_bank.watched(hr.settings.catalog_url, sums) as elsewhere, refreshing(hr):
            for _ in range(MOST):
                if len(seen) >= LOOKS and len(states) >= 3 and elsewhere.back.value >= 3:
                    break
                pinned = hr.at()
                seen.append(tuple(map(int, pinned.sql(look).first() or ())))
                states.add(tuple(sorted(map(tuple, pinned.sql(f"SELECT amount FROM {ns}.rich").collect()))))
                if len(seen) == LOOKS // 2:
                    hr.sources.resnapshot(source, ["there"])
        assert set(seen) == {(TOTAL, TOTAL, TOTAL)}
        assert (len(states) >= 3, transfers.count > 50) == (True, True)
        (found,) = elsewhere.seen
        assert not found.torn
        assert min(found.looks, found.back, found.states) >= 3, found
        hr.refresh()
        assert pg_bank.same(hr, source, db)
    assert all(result.ok for result in hr.verify([f"{ns}.rich", f"{ns}.poor", f"{ns}.total"]))
    for name in ("total", "rich", "poor"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)


def test_no_transfer_within_a_shard_is_ever_seen_half(hr: Headrace, ns: str, server: LogicalServer) -> None:
    """Over two servers, in a diamond, while rows move on both; then one is down, and comes back."""
    source, told = f"{ns}_bank", list[Event]()
    with logical_server() as other, ExitStack() as stack:
        urls = {"eu": server.fresh(), "us": other.fresh()}
        for url in urls.values():
            pg_bank.create(stack.enter_context(psycopg.connect(url, autocommit=True)))
        shards = {
            name: {"url": url, "capture": way} for (name, url), way in zip(urls.items(), WAYS_OF_SHARDS, strict=True)
        }
        hr.sources.create(source, shards, TABLES, same_key="allowed")
        both = " UNION ALL ".join(f"SELECT amount FROM {source}.{table}" for table in TABLES)
        sides = {"rich": "amount >= 100", "poor": "amount < 100"}
        for side, condition in sides.items():
            query = f"SELECT amount FROM ({both}) AS b WHERE {condition}"
            hr.create_stream_table(f"{ns}.{side}", query, refresh_mode="DIFFERENTIAL")
        met = " UNION ALL ".join(f"SELECT amount FROM {ns}.{side}" for side in sides)
        hr.create_stream_table(f"{ns}.total", f"SELECT sum(amount) AS total FROM ({met}) AS m")
        sums = (
            ([TableName(LAKE, (source,), table) for table in TABLES], "amount"),
            ([TableName(LAKE, (ns,), side) for side in sides], "amount"),
            ([TableName(LAKE, (ns,), "total")], "total"),
        )
        clients = [Transfers(url) for url in urls.values()]
        with ExitStack() as moving, pg_bank.watched(hr.settings.catalog_url, sums, 2 * TOTAL) as elsewhere:
            for client in clients:
                moving.enter_context(client.going_on())
            for looks in range(MOST):
                if looks >= (LOOKS if LONG else 5) and elsewhere.back.value >= 3:
                    break
                hr.refresh()
        (found,) = elsewhere.seen
        assert not found.torn
        assert min(found.looks, found.back, found.states) >= 3, found
        assert min(client.count for client in clients) > 20
        other.vanish()
        with psycopg.connect(urls["eu"], autocommit=True) as db:
            db.execute(
                "UPDATE here SET amount = amount - 7 WHERE id = 1; UPDATE there SET amount = amount + 7 WHERE id = 1"
            )
        stack.callback(hr.events.subscribe(told.append))
        hr.refresh()
        hr.refresh()
        failures = [e for e in told if isinstance(e, RefreshFailed)]
        assert [(e.table, e.code, e.message.startswith("Shard us: ")) for e in failures] == [
            (source, "SOURCE_UNREACHABLE", True)
        ], "told once"
        status = hr.sources.status(source)
        assert [(name, of["reached"]) for name, of in status.shards.items()] == [("eu", True), ("us", False)]
        assert hr.sql(f"SELECT total FROM {ns}.total").first()[0] == 2 * TOTAL
        other.come_back()
        hr.refresh()
        status = hr.sources.status(source)
        assert [(of["reached"], of["error"]) for of in status.shards.values()] == [(True, None)] * 2
        assert all(result.ok for result in hr.verify([f"{ns}.rich", f"{ns}.poor", f"{ns}.total"]))
        for name in ("total", "rich", "poor"):
            hr.drop_stream_table(f"{ns}.{name}")
        hr.sources.drop(source)
