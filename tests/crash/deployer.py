"""A process that changes a deployment, and is killed at a given point of it.

    python deployer.py <project> <point> <last step>

It first checks what its predecessor left: every table must verify, the public ones be of one generation, and nothing
lie about, after the last step too. Then it adds a row, brings everything up to date, and takes the next step in the
life of the deployment: creates what is missing of it, with a table that comes and one that goes, promotes it, takes
that back, promotes it again, cancels. SIGKILL comes at the point of that number, which is an event or a commit to the
catalog, unless the step has fewer.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Collection

import sqlalchemy as sa
from kit.random_deployments import left_behind

import headrace
from headrace.catalog import Catalog
from headrace.reasons import FullReason
from headrace.refresh.held_leases import TTL, owner_is_dead

PUBLIC, GREENS = ("k.b", "k.c"), ("k__green.b", "k__green.c")
NEW = {"k.b": "SELECT k, v, 'new' AS made FROM k.a WHERE k > 1", "k.c": None}
COMES, GOES = "k.f", "k.e"
MEMBERS = (*PUBLIC, COMES, GOES)


def main(project: str, point: int, last: str) -> None:
    with headrace.open(project) as hr:
        if hr._catalog.find_stream_table(hr._name("k.d")) is None:
            pipeline(hr)
        else:
            print("before", whole(hr), flush=True)
        hr.sql("INSERT INTO k.a SELECT max(k) + 1, max(k) FROM k.a")
        hr.refresh()
        forget_the_dead(hr._catalog)
        print("recovered", whole(hr), left(hr), outside(hr), flush=True)
        kill = Killer(point)
        hr.events.subscribe(kill)
        sa.event.listen(hr._catalog._database.engine, "commit", kill)
        taken = step(hr)
        sa.event.remove(hr._catalog._database.engine, "commit", kill)
        print("survived", taken != last or whole(hr), left(hr), flush=True)  # else the next process finds out


def pipeline(hr: headrace.Headrace) -> None:
    hr.sql("CREATE NAMESPACE lake.k; CREATE TABLE k.a (k BIGINT, v BIGINT) USING iceberg")
    hr.sql("INSERT INTO k.a VALUES (1, 1), (2, 2)")
    hr.sql("CREATE STREAM TABLE k.b AS SELECT k, v, 'old' AS made FROM k.a")
    hr.sql("CREATE STREAM TABLE k.c AS SELECT made, count(*) AS n, sum(v) AS v FROM k.b GROUP BY made")
    hr.sql("CREATE STREAM TABLE k.e AS SELECT v FROM k.a")
    hr.sql("CREATE STREAM TABLE k.d REFRESH MODE DIFFERENTIAL AS SELECT n, v FROM k.c")


def step(hr: headrace.Headrace) -> str:
    """Take the step that is due: how often the public tables were exchanged says where the deployment is."""
    greens = {str(g.original): g.promoted_at for g in hr._catalog.greens()}
    promoted = [row.reason for row in hr.history("k.b", limit=None)].count(FullReason.PROMOTED)
    if promoted == 2:
        due = "cancel"
    elif any(greens.values()):
        due = "rollback"
    else:
        due = "promote" if len(greens) == len(MEMBERS) else "create"
    print("begin", due, flush=True)
    if due == "cancel" and greens:
        hr.cancel_green(deployment="green")
    elif due == "rollback":
        hr.rollback_green(deployment="green")
    elif due == "promote":
        hr.promote_all_green()
    elif due == "create":
        create(hr, greens)
    return due


def create(hr: headrace.Headrace, there: Collection[str] = ()) -> None:
    """Create what is missing of the deployment; the green of the reader first, which is defined again for the other."""
    for name in reversed(PUBLIC):
        if name not in there:
            hr.create_green(name, NEW[name])
    if COMES not in there:
        hr.create_green(COMES, "SELECT k FROM k.b", new=True)
    if GOES not in there:
        hr.drop_with_green(GOES)


def whole(hr: headrace.Headrace) -> bool:
    """Whether all tables equal their queries, and the public ones are of one generation, all that there are of it."""
    made = {row[0] for name in PUBLIC for row in hr.spark.sql(f"SELECT DISTINCT made FROM lake.{name}").collect()}
    loaded = [t.name for t in hr.status() if t.version is not None]
    there = {name for name in (COMES, GOES) if hr._catalog.find_stream_table(hr._name(name)) is not None}
    return (made, there) in (({"old"}, {GOES}), ({"new"}, {COMES})) and all(v.ok for v in hr.verify(loaded))


def left(hr: headrace.Headrace) -> list[str]:
    """What lies about: pointers that nobody published, stored tables that belong to nothing, greens that read blues."""
    catalog = hr._catalog
    with catalog.reading() as reader:
        found = [*map(str, catalog.dirty_staging()), *left_behind(reader)]
        known = {g.name for g in reader.greens()}
        named = [str(t.name) for t in reader.stream_tables() if t.name.namespace[0] != "k" and t.name not in known]
        reads = {str(t.name): [str(s) for s in t.sources] for t in reader.stream_tables()}
    if set(GREENS) <= set(map(str, known)) and reads.get(GREENS[1], [GREENS[0]]) != [GREENS[0]]:
        named.append(f"{GREENS[1]} reads {reads[GREENS[1]]}")
    return found + named


def forget_the_dead(catalog: Catalog) -> None:
    """Take over what a killed process held, as its heirs do that need it, and clear away what it was making."""
    with catalog.reading() as reader:
        held = [x.resource for x in reader.leases() if x.owner is not None and owner_is_dead(x.owner)]
    catalog.release(catalog.acquire(held, "heir", TTL, is_dead=owner_is_dead))
    catalog.reset_staging()


def outside(hr: headrace.Headrace) -> set[str]:
    """How the reader outside was refreshed since it was loaded."""
    return {row.mode.value for row in hr.history("k.d", limit=None) if row.reason is None}


class Killer:
    """Kills this process at the point of a number: an event, or a commit to the catalog that is about to be made."""

    def __init__(self, point: int) -> None:
        self._point, self._heard = point, itertools.count()

    def __call__(self, what: object) -> None:
        """May be told by several threads at once."""
        number = next(self._heard)
        print("point", number, type(what).__name__, getattr(what, "stage", ""), flush=True)
        if number == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
