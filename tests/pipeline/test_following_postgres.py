"""Schedules follow a database by themselves: what commits there arrives in tables over its mirrors."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

import psycopg
from kit.background import in_background
from kit.logical import LogicalServer

from headrace.api.facade import Headrace

PATIENCE = 120.0


def running(hr: Headrace) -> AbstractContextManager[None]:
    """Let schedules run in a thread."""
    return in_background(lambda stopping: hr.run(stopping=stopping), PATIENCE)


def test_commits_arrive_by_themselves(hr: Headrace, ns: str, server: LogicalServer) -> None:
    source = f"{ns}_shop"
    url = server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(12,2))")
        db.execute("INSERT INTO orders SELECT g, 'r' || g % 3, 10 FROM generate_series(1, 30) g")
        hr.sources.create(source, url, ["public.orders"])
        hr.create_stream_table(
            f"{ns}.revenue",
            f"SELECT region, sum(amount) AS total FROM {source}.orders GROUP BY region",
            "ON CHANGE",
            "DIFFERENTIAL",
        )
        with running(hr):
            for turn in (1, 3):
                db.execute("UPDATE orders SET amount = amount + 1 WHERE id <= %s", (10 * turn,))
                wanted = dict(db.execute("SELECT region, sum(amount) FROM orders GROUP BY region").fetchall())
                until = time.monotonic() + PATIENCE
                while (seen := dict(map(tuple, hr.at().table(f"{ns}.revenue").collect()))) != wanted:
                    assert time.monotonic() < until, (seen, wanted)
                    time.sleep(0.5)
    assert hr.verify(f"{ns}.revenue").ok
    hr.drop_stream_table(f"{ns}.revenue")
    hr.sources.drop(source)
