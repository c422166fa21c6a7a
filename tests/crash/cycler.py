"""A process that refreshes a cycle of stream tables and is killed at a given point of it.

    python cycler.py <project> <turn> <place>

It first checks what a killed predecessor left: the members must verify, and reflect each other and one version of what
they read, as published, and again when brought up to date. Then it adds rows to the source, in odd turns takes some
away as well, and refreshes; `nowhere` ends before that. SIGKILL comes at the place: `round 3`, when the third round
begins; `after 4`, with the fourth event after the one that follows the last round.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from typing import Any

from kit.paths import ways
from kit.published import check_groups, groups_of

import headrace
from headrace.events import Event, StageFinished, StageStarted
from headrace.refresh.groups.cycle_refresher import ITERATE

NOWHERE = "nowhere"
MEMBERS = ("k.odd", "k.even")
TABLES = (*MEMBERS, "k.n")


def main(project: str, number: int, place: str) -> None:
    with headrace.open(project) as hr:
        if number == 0:
            create(hr)
        else:
            fit_together(hr)
            print("before", [v.ok for v in hr.verify(TABLES)], flush=True)
            hr.refresh()
            fit_together(hr)
            print("recovered", right(hr), [t.behind for t in hr.status()], hr._catalog.dirty_staging(), flush=True)
        if place == NOWHERE:
            return
        if number % 2:
            hr.sql("DELETE FROM k.edges WHERE s > 1")
        hr.sql(f"INSERT INTO k.edges VALUES (1, 2), (2, {3 + number})")
        hr.events.subscribe(Killer(place))
        hr.refresh()


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


def fit_together(hr: headrace.Headrace) -> None:
    """Fail where the members of the cycle do not."""
    groups = groups_of(hr._catalog)
    assert [set(map(str, group)) for group in groups] == [set(MEMBERS)]
    with hr._catalog.reading() as reader:
        check_groups(groups, reader.frontiers(), reader.newest_versions())


def right(hr: headrace.Headrace) -> list[bool]:
    """Whether each table has what follows from the source as it is now.

    Found here: verifying a member has Spark go through all rounds, for each of them again.
    """
    odd, even = ways({(s, d) for s, d in hr.sql("SELECT s, d FROM k.edges").collect()})
    expected: tuple[Counter[Any], ...] = (
        Counter(odd),
        Counter(even),
        Counter(Counter(s for s, _ in odd).items()),
    )
    held = (Counter(map(tuple, hr.sql(f"SELECT * FROM {table}").collect())) for table in TABLES)
    return [found == wanted for found, wanted in zip(held, expected, strict=True)]


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
