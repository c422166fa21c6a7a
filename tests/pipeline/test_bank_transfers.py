"""Money moves between accounts while a reader polls pinned states: no transfer is ever seen half, anywhere.

Through capture, two mirrors, two stream tables over both and the diamond they make; also while one table is taken anew.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server

from headrace.api import Headrace

ACCOUNTS, TOTAL = 40, 8_000
LOOKS, PATIENCE = 10, 240.0


@pytest.fixture(scope="module")
def server() -> Iterator[LogicalServer]:
    with logical_server() as started:
        yield started


class Transfers:
    """A thread that moves money between two tables, in transactions that overlap with a second one's."""

    def __init__(self, url: str) -> None:
        self.url, self.count, self.leave = url, 0, threading.Event()

    def move(self, seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.leave.wait(0.02):
                tables, amount = chance.sample(["here", "there"], 2), chance.randint(1, 90)
                with db.transaction():  # always in one order: the two of them never wait for each other in a circle
                    for table, change in sorted(zip(tables, (-amount, amount), strict=True)):
                        key = chance.randint(1, ACCOUNTS)
                        db.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (change, key))
                self.count += 1

    @contextmanager
    def going_on(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.move, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.leave.set()
            for thread in threads:
                thread.join()


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
        for table in ("here", "there"):
            db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
            db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")
        hr.sources.create(source, url, ["here", "there"])
        both = " UNION ALL ".join(f"SELECT amount FROM {source}.{table}" for table in ("here", "there"))
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
        for table in ("here", "there"):
            mirrored = sorted(map(tuple, hr.sql(f"SELECT id, amount FROM lake.{source}.{table}").collect()))
            assert mirrored == sorted(db.execute(f"SELECT id, amount FROM {table}").fetchall())
    assert all(result.ok for result in hr.verify([f"{ns}.rich", f"{ns}.poor", f"{ns}.total"]))
    for name in ("total", "rich", "poor"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)
