"""Two schedulers with a Spark each on a random pipeline, while sources change, queries fail, connections to the
catalog break, and schedulers or their Sparks are killed.

Throughout: every table that is looked at equals its query at its frontier, frontiers do not go back, groups fit
together in every published state, and what is published is what the catalog says. Nobody refreshes what another one is
refreshing. What can be tried without Spark is tried far more often in test_schedulers_killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from catalog_kit.databases import Postgres, break_a_connection
from catalog_kit.proxy import BreakingProxy
from kit.long_tests import LONG
from kit.published import Frontiers, check_groups, check_history, check_onward, groups_of
from kit.random_dag import CURE, POISON, make_pipeline, statement
from kit.spans import check_that_nobody_was_in_anothers_way, lines
from kit.sparks import SHORT_LIVED_OPTIONS, as_text

import headrace
from headrace.api.facade import Headrace
from headrace.catalog import Catalog, Outcome
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.names import LAKE, TableName
from headrace.project.new_project import init_project
from headrace.refresh.cut.cut import metadata

TABLES = (20, 40) if LONG else (9, 9)
KILLS = 24 if LONG else 2
"""Of a scheduler and of a Spark in turn."""

BETWEEN = 10
"""Refreshes between two kills, at the least."""

EVERY, POISONED, CURED = 8, 3, 7
"""Of so many steps one makes queries fail, and a later one lets them work again, once one has failed."""

STEPS = 300
"""So many steps at the most, until these are done; on a quiet machine it takes a few."""

SEEDS = [int(os.environ.get("HEADRACE_TEST_SEED", "0")) + n for n in range(3 if LONG else 1)]
T = TypeVar("T")
SCRIPT = Path(__file__).with_name("chaotic.py")

SMALL = as_text({"spark.driver.memory": "1g", **SHORT_LIVED_OPTIONS})
"""Three Sparks share this machine."""


@dataclass(frozen=True)
class Process:
    """A scheduler."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def working(self) -> bool:
        return any(told["event"] == "stage_started" for told in lines(self.log))

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


@dataclass
class Chaos:
    """A pipeline and what is done to it.

    Args:
        hr: The project, in the test's own process.
        place: The catalog, as the test reaches it.
        folder: Where logs go.
        chance: Decides everything that the test does.
    """

    hr: Headrace
    place: str
    folder: Path
    chance: random.Random
    processes: list[Process] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    groups: list[tuple[TableName, ...]] = field(default_factory=list)
    reached: Frontiers = field(default_factory=dict)
    steps: int = 0
    looks: int = 0
    verified: int = 0

    def start(self) -> None:
        log = self.folder / f"scheduler-{len(self.logs)}.jsonl"
        self.logs.append(log)
        command = [sys.executable, str(SCRIPT), str(self.hr.settings.root), str(log)]
        with log.with_suffix(".txt").open("wb") as output:
            self.processes.append(Process(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT), log))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        self.processes.clear()

    def step(self, catalog: Catalog) -> None:
        """Change a source, perhaps break a connection, look and verify; the one that breaks may be ours."""
        self.steps += 1
        with suppress(EnvironmentFault):
            self.hr.sql(self.change(catalog))
        if self.chance.random() < 0.3:
            break_a_connection(self.place)
        for _ in range(self.chance.randint(1, 40)):
            with suppress(EnvironmentFault):
                self.look(catalog)
            time.sleep(0.05)
        with suppress(EnvironmentFault):
            self.verify()
        with suppress(EnvironmentFault):
            catalog.unpause([t.name for t in catalog.stream_tables()])

    def change(self, catalog: Catalog) -> str:
        """What becomes of a source in this step."""
        turn = self.steps % EVERY
        if turn == POISONED:
            return POISON
        return CURE if turn == CURED and query_failed(catalog) else statement(self.chance)

    def kill(self, number: int, catalog: Catalog) -> None:
        """Kill one that is at work; every other time only its Spark."""
        for _ in range(STEPS):  # who comes late finds work only while sources change
            if all(process.working for process in self.processes):
                break
            self.step(catalog)
        else:
            pytest.fail("a scheduler never has work")
        victim = self.chance.choice(self.processes)
        if number % 2:
            victim.popen.send_signal(signal.SIGUSR1)
            return
        victim.kill()
        self.processes.remove(victim)
        self.start()

    def look(self, catalog: Catalog) -> None:
        """At any one state of the catalog."""
        with catalog.reading() as reader:
            frontiers, newest = reader.frontiers(), reader.newest_versions()
            pointers = reader.pointers(LAKE, list(frontiers))
        self.looks += 1
        check_onward(self.reached, frontiers)
        self.reached = frontiers
        check_groups(self.groups, frontiers, newest)
        for name in frontiers:
            assert metadata(pointers[name].metadata_location).current_snapshot_id == newest[name].snapshot_id, name

    def verify(self) -> None:
        """Any table equals its query at its frontier, whatever is being done to it."""
        if self.reached:
            result = self.hr.verify(str(self.chance.choice(sorted(self.reached))))
            assert result.ok, result
            self.verified += 1


@pytest.fixture
def chaos(
    request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Chaos]:
    monkeypatch.setenv("HEADRACE_SPARK_OPTIONS", SMALL)
    monkeypatch.setenv("HEADRACE_SPARK_MASTER", "local[1]")
    place = postgres.fresh()
    proxy = BreakingProxy(postgres.socket_folder)  # JDBC knows no Unix sockets
    name = place.partition("?")[0].rpartition("/")[2]
    init_project(tmp_path / "p", catalog_url=f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}")
    with headrace.open(tmp_path / "p") as hr:
        one = Chaos(hr, place, tmp_path, random.Random(request.param))
        try:
            yield one
        finally:
            one.end()
    proxy.close()


@pytest.mark.parametrize("chaos", SEEDS, indirect=True, ids=[f"HEADRACE_TEST_SEED={seed}" for seed in SEEDS])
def test_nothing_is_lost_doubled_or_half_seen(chaos: Chaos) -> None:
    make_pipeline(chaos.hr, chaos.chance, chaos.chance.randint(*TABLES))
    with Catalog.open(chaos.place) as catalog:
        chaos.groups = groups_of(catalog)
        assert chaos.groups
        for _ in range(2):
            chaos.start()
        for number in range(KILLS + 1):
            go_on(chaos, catalog)
            if number < KILLS:
                chaos.kill(number, catalog)
        chaos.end()
        patiently(lambda: chaos.hr.sql(CURE))
        settle(chaos, catalog)
        check_history(catalog)
        assert catalog.dirty_staging() == ()
    assert chaos.looks > 10 * KILLS
    assert chaos.verified > KILLS
    assert all(result.ok for result in patiently(chaos.hr.verify))
    assert check_that_nobody_was_in_anothers_way(chaos.logs) > KILLS * BETWEEN


def go_on(chaos: Chaos, catalog: Catalog) -> None:
    """Trouble, until so much was refreshed in spite of it, and a query has failed."""
    before = patiently(lambda: published(catalog))
    for _ in range(STEPS):
        chaos.step(catalog)
        if patiently(lambda: published(catalog)) >= before + BETWEEN and patiently(lambda: query_failed(catalog)):
            return
    pytest.fail("nothing is refreshed any more, or no query fails")


def published(catalog: Catalog) -> int:
    """How many refreshes were."""
    return sum(entry.outcome is Outcome.OK for entry in catalog.history())


def query_failed(catalog: Catalog) -> bool:
    """Whether one has, of a row that it cannot compute."""
    return any(entry.error_code == "ARITHMETIC_ERROR" for entry in catalog.history())


def settle(chaos: Chaos, catalog: Catalog) -> None:
    """Without any more trouble everything becomes up to date."""
    trouble: list[str] = []
    for _ in range(20):
        if not any(info.behind for info in chaos.hr.status()):
            return
        try:
            chaos.hr.refresh()
        except HeadraceError as error:
            trouble.append(str(error))
        chaos.look(catalog)
    pytest.fail(f"it never becomes quiet: {[i.name for i in chaos.hr.status() if i.behind]} {trouble[-3:]}")


def patiently(call: Callable[[], T]) -> T:
    """Spark finds out one by one that its connections to the catalog are dead, each time by failing."""
    for _ in range(20):
        with suppress(EnvironmentFault):
            return call()
    pytest.fail("the catalog stays away")
