"""Money moves between accounts while a reader polls pinned states: no transfer is ever seen half, anywhere.

Through capture, two mirrors, two stream tables over both and the diamond they make; also while one table is taken anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from kit import pg_bank
from kit.logical import LogicalServer, logical_server
from kit.pg_bank import TABLES, TOTAL, Transfers

from headrace.api import Headrace

LOOKS, PATIENCE = 10, 240.0


@pytest.fixture(scope="module")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


@contextmanager
def refreshing(hr: Headrace) -> Iterator[None]:
    """A thread lands and refreshes without a pause; what that raises is raised here."""
    stopping, raised = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not stopping.is_set():
                hr.refresh()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not raised, raised


def test_no_transfer_is_ever_seen_half(hr: Headrace, ns: str, server: LogicalServer) -> None:
    source, url = f"{ns}_bank", server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        pg_bank.create(db)
        hr.sources.create(source, url, TABLES)
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
        transfers, seen, states = Transfers(url), [], set()
        with transfers.going_on(), refreshing(hr):
            until = time.monotonic() + PATIENCE
            while (len(seen) < LOOKS or len(states) < 3) and time.monotonic() < until:
                pinned = hr.at()
                seen.append(tuple(map(int, pinned.sql(look).first() or ())))
                states.add(tuple(sorted(map(tuple, pinned.sql(f"SELECT amount FROM {ns}.rich").collect()))))
                if len(seen) == LOOKS // 2:
                    hr.sources.resnapshot(source, ["there"])
        assert set(seen) == {(TOTAL, TOTAL, TOTAL)}
        assert (len(states) >= 3, transfers.count > 50) == (True, True)
        hr.refresh()
        assert pg_bank.same(hr, source, db)
    assert all(result.ok for result in hr.verify([f"{ns}.rich", f"{ns}.poor", f"{ns}.total"]))
    for name in ("total", "rich", "poor"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)
