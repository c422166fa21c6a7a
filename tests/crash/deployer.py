"""A process that promotes a deployment, or takes it back, and is killed at a given point of it.

    python deployer.py <project> <turn> <place>

It first checks what its predecessor left: every table must verify, and the three public ones be of one generation. Then
it adds a row, brings everything up to date, and exchanges the generations: promotes them where they are greens, takes
the promotion back where they are not. SIGKILL comes with the event of that number; "nowhere" never comes.
"""

from __future__ import annotations

import os
import signal
import sys

import headrace
from headrace.events import Event

PUBLIC = ("k.b", "k.c")


def main(project: str, number: int, place: str) -> None:
    with headrace.open(project) as hr:
        if number == 0:
            create(hr)
        print("before", whole(hr), flush=True)
        hr.sql(f"INSERT INTO k.a VALUES ({10 + number}, {number})")
        hr.refresh()
        print("recovered", whole(hr), hr._catalog.dirty_staging(), outside(hr), flush=True)
        hr.events.subscribe(Killer(place))
        promoted = any(green.promoted_at for green in hr._catalog.greens())
        done = hr.rollback_green(deployment="green") if promoted else hr.promote_all_green()
        print("survived", len(done.tables), whole(hr), flush=True)


def create(hr: headrace.Headrace) -> None:
    hr.sql("CREATE NAMESPACE lake.k; CREATE TABLE k.a (k BIGINT, v BIGINT) USING iceberg")
    hr.sql("INSERT INTO k.a VALUES (1, 1), (2, 2)")
    hr.sql("CREATE STREAM TABLE k.b AS SELECT k, v, 'old' AS made FROM k.a")
    hr.sql("CREATE STREAM TABLE k.c AS SELECT made, count(*) AS n, sum(v) AS v FROM k.b GROUP BY made")
    hr.sql("CREATE STREAM TABLE k.d REFRESH MODE DIFFERENTIAL AS SELECT n, v FROM k.c")
    hr.create_green("k.b", "SELECT k, v, 'new' AS made FROM k.a WHERE k > 1")
    hr.create_green("k.c")


def whole(hr: headrace.Headrace) -> bool:
    """Whether all tables equal their queries, and the public ones are of one generation."""
    made = {row[0] for name in PUBLIC for row in hr.spark.sql(f"SELECT DISTINCT made FROM lake.{name}").collect()}
    return len(made) == 1 and all(v.ok for v in hr.verify())


def outside(hr: headrace.Headrace) -> set[str]:
    """How the reader outside was refreshed since it was loaded."""
    return {row.mode.value for row in hr.history("k.d") if row.reason is None}


class Killer:
    """Kills this process at an event."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.seen = 0

    def __call__(self, event: Event) -> None:
        print("event", type(event).__name__, getattr(event, "stage", ""), flush=True)
        if self.place == str(self.seen):
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
