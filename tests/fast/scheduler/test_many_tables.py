"""What a look over many tables costs, counted in calls of Python functions and in statements."""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from catalog_kit.ready import ready_catalog
from catalog_kit.statements import statements
from kit.pipelines import Lake, PublishingWorker, define, rules

from headrace.api.database_sinks import Sinks
from headrace.catalog import Catalog, schema
from headrace.catalog.state.reader import Reader
from headrace.clock import SystemClock
from headrace.config import default_settings
from headrace.delivery.deliverer import Deliverer
from headrace.events import Events
from headrace.names import LAKE, TableName
from headrace.refresh.groups import grouping
from headrace.scheduler.policy.dispatch import Dispatch
from headrace.scheduler.policy.plan_cycle import plan_cycle
from headrace.scheduler.policy.unit_tasks import unit_tasks
from headrace.scheduler.policy.urgency import task_urgency
from headrace.scheduler.scheduler_state import SchedulerState, read_scheduler_state

FEW, TIMES = 100, 4
SLACK = 1.2
"""A logarithm of the number, at most, may come on top: names are sorted."""


def calls(act: Callable[[], object]) -> int:
    """Count the Python functions that are called, also those that C calls, as hashes and keys of sorts."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def look(folder: Path, tables: int) -> tuple[int, int]:
    """Calls of the first look over so many new tables, until all wait in line; and of each after one has ended."""
    folder.mkdir()
    lake, chance = Lake(ready_catalog(folder / "headrace.db"), folder), random.Random(3)
    lake.base("s.a", "s.b")
    names = [f"t{number:04}" for number in range(tables)]
    reads = [chance.choice(["a", "b", *names[max(0, place - 40) : place]]) for place in range(tables)]
    with Catalog.open(lake.url) as catalog:
        define(catalog, "; ".join(f"{n}: {r}" for n, r in zip(names, reads, strict=True)), {"*": "ON CHANGE"})
        worker, own = PublishingWorker(lake, catalog), rules(slots=4)
        dispatch = Dispatch(4)

        def act() -> None:
            grouping.forget()
            now = SystemClock().now()
            state = read_scheduler_state(catalog, worker.heads(), own.defaults, own.default_schedule)
            cycle, work = plan_cycle(state, now), unit_tasks(state.grouping)
            left = task_urgency(state, work, now)
            dispatch.draw(state.grouping.units.dag, left, work.pools, work.inside, work.outside)
            dispatch.add(cycle.wanted)
            assert len(cycle.wanted) == tables
            assert dispatch.waiting == tables

        first = calls(act)
        started = dispatch.start()
        return first, calls(lambda: [dispatch.finish(task) for task in started])


def test_a_look_over_new_tables_is_linear(tmp_path: Path) -> None:
    few, many = look(tmp_path / "few", FEW), look(tmp_path / "many", FEW * TIMES)
    assert many[0] < few[0] * TIMES * SLACK
    assert many[1] < few[1] * 2


def statements_of_a_look(folder: Path, sources: int) -> int:
    """Statements of a look that finds every table behind a source of its own, by two versions or three."""
    folder.mkdir()
    lake = Lake(ready_catalog(folder / "headrace.db"), folder)
    names = [f"s.a{number}" for number in range(sources)]
    with Catalog.open(lake.url) as catalog:
        lake.base(*names)
        define(catalog, "; ".join(f"t{number}: a{number}" for number in range(sources)), {"*": "ON CHANGE"})
        worker, own = PublishingWorker(lake, catalog), rules(slots=1)

        def state() -> SchedulerState:
            return read_scheduler_state(catalog, worker.heads(), own.defaults, own.default_schedule)

        for name in list(state().tables):
            worker.refresh((name,), worker.heads())
        for changed in (names[:1], names, names):
            lake.base(*changed)
            state()  # what is observed first is written
        with statements(catalog) as sent:
            found = state()
        with catalog.reading() as reader:
            first = {name: first_missing(reader, name) for name in found.tables}
        assert {name: table.standing.behind_since for name, table in found.tables.items()} == first
        return len(sent)


def first_missing(reader: Reader, name: TableName) -> dt.datetime:
    """When the first version was committed that a table with one source does not reflect."""
    ((source, seen),) = reader.frontier(name).versions.items()
    return reader.versions(source, after=seen)[0].committed_at


def test_a_look_where_many_sources_moved_asks_as_many_statements_as_where_few_did(tmp_path: Path) -> None:
    assert statements_of_a_look(tmp_path / "few", 2) == statements_of_a_look(tmp_path / "many", 9)


STREAM = TableName(LAKE, ("s",), "t")


def calls_when_behind(folder: Path, versions: int) -> tuple[int, ...]:
    """Calls of a look at a table and at a sink that are behind by so many versions, and of asking for sinks."""
    folder.mkdir()
    lake = Lake(ready_catalog(folder / "headrace.db"), folder)
    lake.base("s.a")
    with Catalog.open(lake.url) as catalog:
        define(catalog, "t: a", {"*": "MANUAL"})
        worker, own = PublishingWorker(lake, catalog), rules(slots=1)
        worker.refresh((STREAM,), worker.heads())
        catalog.create_sink(
            "out", "uuid", "postgres", STREAM, {"url": "postgresql://here/db", "table": ["public", "out"]}, None
        )
        deliverer = Deliverer(catalog, tables=None, events=Events(), defaults=own.defaults)  # type: ignore[arg-type]
        come = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
        with catalog._database.engine.begin() as connection:
            for (relation,) in connection.execute(sa.select(schema.relation.c.id)).all():
                numbered = {"relation_id": relation, "snapshot_id": 1, "committed_at": come}
                connection.execute(
                    sa.insert(schema.version), [{**numbered, "version": number} for number in range(1, versions + 1)]
                )
        found: list[dt.datetime | None] = []

        def look() -> None:
            state = read_scheduler_state(catalog, worker.heads(), own.defaults, own.default_schedule)
            found.append(state.tables[STREAM].standing.behind_since)

        look()
        tables = calls(look)
        assert found == [come, come]
        assert deliverer.due(come)
        sinks = Sinks(catalog, Events(), default_settings(folder), lambda name: STREAM, lambda: None)  # type: ignore[arg-type, return-value]
        (info,) = sinks.list()
        assert info.name == "out"
        return tables, calls(lambda: deliverer.due(come)), calls(sinks.list)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["table", "sink", "status of sinks"])
def test_a_look_costs_the_same_however_far_somebody_is_behind(tmp_path: Path, place: int) -> None:
    few, many = calls_when_behind(tmp_path / "few", 10), calls_when_behind(tmp_path / "many", 1_000)
    assert many[place] < few[place] * SLACK
