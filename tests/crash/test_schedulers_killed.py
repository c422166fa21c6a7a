"""Schedulers on one pipeline, while sources change, refreshes fail, connections break and processes are killed.

Throughout: every table holds what its query gives at its frontier, no table goes back, no two refresh one table, and
groups fit together in every published state. At the end everything is up to date.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres, sql
from catalog_kit.killed import start
from kit.long_tests import LONG
from kit.pipelines import Lake, PublishingWorker, contents, define, mixed, query, scheduler
from kit.published import check_groups, check_onward

from headrace.catalog import Catalog
from headrace.catalog.state.reader import Reader
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.schedule import Kind, Schedule

KILLS = 50 if LONG else 4
STEPS = 30_000 if LONG else 3_000
"""So many things are done at the most; on a quiet machine it takes a tenth of them."""

SEEDS = [int(os.environ.get("HEADRACE_TEST_SEED", "0")) + n for n in range(6 if LONG else 1)]
AT_ONCE = Schedule("ON CHANGE", 0, Kind.ON_CHANGE)
BASES = ("w", "x", "y", "z")


def keep_fresh(url: str, folder: str, seed: int) -> None:
    """A scheduler in a process of its own, until it is killed."""
    chance = random.Random(seed)

    def trouble(name: object) -> None:
        if chance.random() < 0.01:
            raise HeadraceError("TEST_FAULT", f"{name} was made to fail.", retryable=True)

    while True:
        # SQLite: the killed one before has not quite disappeared; PostgreSQL: a connection was cut while it began
        with contextlib.suppress(UserError, EnvironmentFault), Catalog.open(url) as catalog:
            worker = PublishingWorker(Lake(url, Path(folder)), catalog, lambda _: chance.random() * 0.02, trouble)
            scheduler(catalog, worker, default_schedule=AT_ONCE, slots=3).run(threading.Event())
        time.sleep(0.05)


@dataclass
class Chaos:
    """A pipeline and what is done to it."""

    url: str
    lake: Lake
    catalog: Catalog
    chance: random.Random
    processes: list[BaseProcess]
    many: bool
    kills: int = 0
    reached: Mapping[TableName, Frontier] = field(default_factory=dict)

    def step(self) -> None:
        move = self.chance.random()
        if move < 0.75:
            self.lake.base(f"s.{self.chance.choice(BASES)}")
        elif move < 0.85:
            self.cut()
        else:
            self.catalog.unpause([t.name for t in self.catalog.stream_tables()])

    def kill(self) -> None:
        self.kills += 1
        victim = self.chance.choice(self.processes)
        os.kill(victim.pid or 0, signal.SIGKILL)
        victim.join()
        self.processes.remove(victim)
        self.start()

    def cut(self) -> None:
        """Break a connection of theirs; SQLite has none."""
        if self.many:
            with sql(self.url, autocommit=True) as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND datname = current_database() ORDER BY random() LIMIT 1"
                )

    def start(self) -> None:
        seed = self.chance.randrange(10**6)
        self.processes.append(start(keep_fresh, self.url, str(self.lake.folder), seed))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        yield server.fresh()
    else:
        yield f"sqlite:///{tmp_path / 'headrace.db'}"


@pytest.mark.parametrize("seed", SEEDS, ids=[f"HEADRACE_TEST_SEED={seed}" for seed in SEEDS])
def test_nothing_is_lost_doubled_or_half_seen(place: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Catalog.open(place) as catalog:
        lake = Lake(place, tmp_path)
        lake.base(*(f"s.{base}" for base in BASES))
        make_pipeline(catalog, chance)
        many = place.startswith("postgresql")
        chaos = Chaos(place, lake, catalog, chance, [], many)
        for _ in range(2 if many else 1):
            chaos.start()
        try:
            watch(chaos)
        finally:
            for process in chaos.processes:
                os.kill(process.pid or 0, signal.SIGKILL)
                process.join()
        settle(lake, catalog)
        check_history(catalog)
        check_contents(lake, catalog)


def make_pipeline(catalog: Catalog, chance: random.Random) -> None:
    names = [f"t{n:02}" for n in range(chance.randint(20, 40))]
    lines, options = [], {}
    for place, name in enumerate(names):
        among = [*BASES, *names[max(0, place - 8) : place]]
        lines.append(f"{name}: {' '.join(chance.sample(among, chance.choice((1, 1, 2, 2, 3))))}")
        if chance.random() < 0.6:
            options[name] = {"diamond_consistency": "none"}
    define(catalog, "; ".join(lines), **options)


def watch(chaos: Chaos) -> None:
    """Do things, and look at what is published all the while."""
    cut = grouping({t.name: t for t in chaos.catalog.stream_tables()}, Defaults())
    groups = [members for members in cut.units.members.values() if len(members) > 1]
    assert groups
    before = 0
    for _ in range(STEPS):
        if chaos.kills == KILLS:
            return
        chaos.step()
        if (refreshed := len(chaos.catalog.history())) > before + 12:  # starting takes a while, and then it should work
            before = refreshed
            chaos.kill()
        until = time.monotonic() + chaos.chance.random() * 0.3
        while time.monotonic() < until:
            with contextlib.suppress(EnvironmentFault):  # the broken connection may be ours
                chaos.reached = look(chaos.lake, chaos.catalog, groups, chaos.reached)
    pytest.fail("it was not much of a test")


def look(
    lake: Lake, catalog: Catalog, groups: list[tuple[TableName, ...]], reached: Mapping[TableName, Frontier]
) -> Mapping[TableName, Frontier]:
    """In any one state, members of a group reflect each other as they are, and the same versions of all else.

    Returns the frontiers, none of which may have gone back.
    """
    with catalog.reading() as reader:
        frontiers, newest = reader.frontiers(), reader.newest_versions()
        check_queries(lake, reader)
    check_onward(reached, frontiers)
    check_groups(groups, frontiers, newest)
    return frontiers


def settle(lake: Lake, catalog: Catalog) -> None:
    """Let everything become up to date, without any more trouble."""
    worker = PublishingWorker(lake, catalog)
    for _ in range(50):
        catalog.unpause([t.name for t in catalog.stream_tables()])
        if (
            not scheduler(catalog, worker, default_schedule=AT_ONCE, ahead=60)
            .run(threading.Event(), once=True)
            .refreshed
        ):
            return
    pytest.fail("it never becomes quiet")


def check_history(catalog: Catalog) -> None:
    """No table went back, and no two refreshed one at once."""
    reached: dict[object, dict[object, int]] = {}
    ended: dict[object, object] = {}
    for entry in reversed(catalog.history()):
        before = reached.get(entry.stream, {})
        assert entry.frontier is not None
        assert all(version >= before.get(source, -1) for source, version in entry.frontier.items())
        assert entry.started_at >= ended.get(entry.stream, entry.started_at)  # type: ignore[operator]
        reached[entry.stream], ended[entry.stream] = dict(entry.frontier), entry.finished_at


def check_queries(lake: Lake, reader: Reader) -> None:
    """Every table holds what its query gives at its frontier."""
    tables, newest = {t.name for t in reader.stream_tables()}, reader.newest_versions()
    for name, frontier in reader.frontiers().items():
        sources = {s: (v.version, v.snapshot_id) for s, v in reader.versions_at(frontier).items()}
        assert lake.read(newest[name].snapshot_id or 0) == query(lake, sources, tables), name


def check_contents(lake: Lake, catalog: Catalog) -> None:
    with catalog.reading() as reader:
        tables = {t.name: t for t in reader.stream_tables()}
        newest = reader.newest_versions()
        for name, frontier in reader.frontiers().items():
            assert {s: newest[s].version for s in tables[name].sources} == dict(frontier)
        check_queries(lake, reader)
        assert reader.frontiers().keys() == tables.keys()
    assert catalog.dirty_staging() == ()
    assert not mixed(*contents(lake, catalog, *(n.table for n in tables)))
