"""A process that refreshes a small pipeline and is killed at a given point of it.

    python refresher.py <project> <round> <kill point>

It first checks what a killed predecessor left: every table must verify as published, and be brought up to date. Then it
changes the source and refreshes until the kill point (the n-th event) sends it SIGKILL; a negative one never comes.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

import headrace
from headrace.events import Event

TABLES = ("k.big", "k.totals")


def main(project: str, number: int, kill_point: int) -> None:
    with headrace.open(project) as hr:
        if number == 0:
            create(hr)
        else:
            check(hr)
        hr.sql(f"INSERT INTO k.t SELECT id + {number} * 1000, id % 7, id FROM range(20)")
        hr.sql(f"DELETE FROM k.t WHERE k % 13 = {number % 13}")
        hr.events.subscribe(Killer(kill_point))
        hr.refresh()
        print("survived", [v.ok for v in hr.verify(TABLES)], flush=True)


def check(hr: headrace.Headrace) -> None:
    print("before", [v.ok for v in hr.verify(TABLES)], flush=True)
    hr.refresh()
    print("recovered", [v.ok for v in hr.verify(TABLES)], [t.behind for t in hr.status()], flush=True)
    logged = hr.sql(f"SELECT coalesce(sum(__hr_w), 0) FROM lake.{log(hr)}").first()[0]
    first, now = hr.sql("SELECT count(*) FROM k.first").first()[0], hr.sql("SELECT count(*) FROM k.big").first()[0]
    print("log", first + logged == now, flush=True)


def create(hr: headrace.Headrace) -> None:
    hr.sql("CREATE NAMESPACE lake.k")
    hr.sql("CREATE TABLE k.t (k BIGINT, g BIGINT, v BIGINT) USING iceberg")
    hr.sql("INSERT INTO k.t SELECT id + 100000, id % 7, id FROM range(200)")
    hr.create_stream_table("k.big", "SELECT k, g, v FROM k.t WHERE v > 3", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(
        "k.totals", "SELECT g, sum(v) AS v, max(k) AS k FROM k.big GROUP BY g", refresh_mode="DIFFERENTIAL"
    )
    hr.sql("CREATE TABLE k.first USING iceberg AS SELECT * FROM k.big")


def log(hr: headrace.Headrace) -> str:
    names = [r.tableName for r in hr.sql("SHOW TABLES IN lake._headrace").collect()]
    return "_headrace." + next(n for n in names if n.startswith("k_big_") and n.endswith("_log"))


class Killer:
    """Kills this process at the n-th event."""

    def __init__(self, point: int) -> None:
        self._heard = itertools.count()
        self._point = point

    def __call__(self, event: Event) -> None:
        """May be told by several threads at once."""
        print("event", type(event).__name__, getattr(event, "stage", ""), flush=True)
        if next(self._heard) == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
