"""A process that refreshes a cycle of stream tables and is killed at a given point of it.

    python cycler.py <project> <turn> <place>

It first checks what a killed predecessor left: the members must verify, and reflect each other and one version of what
they read, as published, and again when brought up to date. Then it adds rows to the source, in odd turns takes some
away as well, and refreshes. SIGKILL comes at the place: `round 3`, when the third round begins; `after 4`, with the
fourth event after the one that follows the last round; anything else never comes.
"""

from __future__ import annotations

import os
import signal
import sys

from kit.published import check_groups, groups_of

import headrace
from headrace.events import Event, StageFinished, StageStarted
from headrace.refresh.groups.cycle_refresher import ITERATE

MEMBERS = ("k.odd", "k.even")
TABLES = (*MEMBERS, "k.n")


def main(project: str, number: int, place: str) -> None:
    with headrace.open(project) as hr:
        if number == 0:
            create(hr)
        else:
            print("before", whole(hr), flush=True)
            hr.refresh()
            print("recovered", whole(hr), [t.behind for t in hr.status()], hr._catalog.dirty_staging(), flush=True)
        if number % 2:
            hr.sql("DELETE FROM k.edges WHERE s > 1")
        hr.sql(f"INSERT INTO k.edges VALUES (1, 2), (2, {3 + number})")
        hr.events.subscribe(Killer(place))
        hr.refresh()
        print("survived", whole(hr), {r.mode for r in hr.history(limit=3)}, flush=True)


def create(hr: headrace.Headrace) -> None:
    hr.sql("CREATE NAMESPACE lake.k; CREATE TABLE k.edges (s BIGINT, d BIGINT) USING iceberg")
    hr.sql("INSERT INTO k.edges VALUES (0, 1), (1, 0)")
    hr.sql("CREATE STREAM TABLE k.odd AS SELECT s, d FROM k.edges")
    hr.sql("CREATE STREAM TABLE k.even AS SELECT DISTINCT e.s, o.d FROM k.odd AS o JOIN k.edges AS e ON e.d = o.s")
    hr.sql("CREATE STREAM TABLE k.n AS SELECT s, count(*) AS n FROM k.odd GROUP BY s")
    hr.sql(
        "CREATE OR REPLACE STREAM TABLE k.odd AS SELECT s, d FROM k.edges "
        "UNION SELECT e.s, v.d FROM k.even AS v JOIN k.edges AS e ON e.d = v.s"
    )


def whole(hr: headrace.Headrace) -> list[bool]:
    """Whether tables equal their queries; fails where members of the cycle do not fit together."""
    groups = groups_of(hr._catalog)
    assert [set(map(str, group)) for group in groups] == [set(MEMBERS)]
    with hr._catalog.reading() as reader:
        check_groups(groups, reader.frontiers(), reader.newest_versions())
    return [v.ok for v in hr.verify(TABLES)]


class Killer:
    """Kills this process at a place."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.iterated = False
        self.after = -1

    def __call__(self, event: Event) -> None:
        stage = getattr(event, "stage", "")
        print("event", type(event).__name__, stage, flush=True)
        round_ = stage.startswith(ITERATE)
        self.iterated |= round_ and isinstance(event, StageFinished)
        self.after += self.iterated and not round_
        begun = isinstance(event, StageStarted) and stage == f"{ITERATE}, {self.place}"
        if begun or self.place == f"after {self.after}":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
