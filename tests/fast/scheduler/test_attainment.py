"""The share of time within target, and why a table is late."""

from __future__ import annotations

import datetime as dt

import pytest
from catalog_kit.samples import lake
from kit.pipelines import PublishingWorker, define, full

from headrace.catalog import Catalog, Reached
from headrace.frontier import Frontier
from headrace.observability.attainment import Stretch, read_stretch
from headrace.refresh.cut.cut import Cut
from headrace.refresh.groups.grouping import Defaults
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.lateness import late_because
from headrace.scheduler.scheduler_state import read_scheduler_state

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
A, B, C = (lake(f"s.{name}") for name in "abc")


def at(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


def reached(name: object, source: object, *states: tuple[float, int, int]) -> list[Reached]:
    return [Reached(name, at(when), version, Frontier({source: seen})) for when, version, seen in states]  # type: ignore


@pytest.mark.parametrize(
    ("states", "commits", "share"),
    [
        ([(0, 0, 0)], [], 1.0),
        ([(0, 0, 0)], [(1, 90)], 1.0),  # missing for ten seconds, which is allowed
        ([(0, 0, 0)], [(1, 50)], 0.6),  # late from 60 on
        ([(0, 0, 0), (70, 1, 1)], [(1, 50)], 0.9),
        ([(0, 0, 0), (55, 1, 1)], [(1, 50)], 1.0),
        ([(0, 0, 0), (70, 1, 1)], [(1, 50), (2, 55)], 0.6),  # at 70 the second change was late already
        ([(50, 0, 0)], [(1, 50)], 0.2),  # counted from its first publication on
        ([(0, 0, 0), (50, 0, 1)], [(1, 10), (2, 60)], 0.4),
        ([(0, 0, 0)], [(7, 20)], 0.3),  # versions between are older than what is known
        ([], [], None),
        ([(100, 0, 0)], [], None),
    ],
)
def test_the_share_of_time(
    states: list[tuple[float, int, int]], commits: list[tuple[int, float]], share: float | None
) -> None:
    committed = {A: [(version, at(when)) for version, when in commits]}
    stretch = Stretch(at(0), at(100), {B: reached(B, A, *states)}, committed)
    found = stretch.share(B, 10)
    assert found == (None if share is None else pytest.approx(share))


def test_lag_is_measured_to_the_root() -> None:
    b, c = reached(B, A, (0, 0, 0), (30, 1, 1)), reached(C, B, (0, 0, 0), (60, 1, 1))
    stretch = Stretch(at(0), at(100), {B: b, C: c}, {A: [(1, at(20))]})
    assert stretch.share(B, 10) == pytest.approx(1.0)
    assert stretch.share(C, 10) == pytest.approx(0.7)  # from 30, when the change was ten seconds old, to 60


def state(catalog: Catalog):  # type: ignore[no-untyped-def]
    return read_scheduler_state(catalog, Cut(catalog, lambda _: None), Defaults(), parse_schedule("ON CHANGE"))


def test_the_stretch_is_read_from_the_history(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b", {"*": "10 seconds"})
    worker = PublishingWorker(lake_, catalog)
    for name in "bc":
        worker.refresh((full(name),), worker.heads())
    lake_.base("s.a")
    worker.heads().versions([A])
    later = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=100)
    with catalog.reading() as reader:
        stretch = read_stretch(reader, [B, C], later)
    assert stretch.share(B, 10) == pytest.approx(0.1, abs=0.05)
    assert stretch.share(C, 10) == pytest.approx(0.1, abs=0.05)
    with catalog.reading() as reader:  # nothing was published on a later day; as it was then, it is
        stretch = read_stretch(reader, [B, C], later + dt.timedelta(days=3))
    assert stretch.share(B, 10) == 0.0
    assert stretch.share(B, 10**7) == 1.0


def test_why_a_table_is_late(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b", {"b": "1 hour", "c": "10 seconds"})
    worker = PublishingWorker(lake_, catalog)
    for name in "bc":
        worker.refresh((full(name),), worker.heads())
    lake_.base("s.a")
    now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=100)

    def why(name, scheduled=True, running=()):
        return late_because(state(catalog), full(name), 10, now, scheduled=scheduled, running=set(running))

    assert why("c") == "s.b has a slower schedule (1 hour)"
    assert why("c", running=[B]) == "s.b is being refreshed"
    assert why("c", running=[C]) == "it is being refreshed"
    assert why("c", scheduled=False) == "no process runs schedules (headrace run)"
    assert why("b") == "it waits for its turn"
    worker.refresh((B,), worker.heads())
    worker.refresh((C,), worker.heads())
    assert why("c") is None
