"""When sinks are due, which are written together, and that one that hangs holds up nobody."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from kit.waiting import until

from headrace.catalog import Sink, SinkStatus
from headrace.delivery.batches import Batch, batch_due, batches
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.names import LAKE, TableName
from headrace.scheduler.patience import Patience
from headrace.scheduler.source_and_sink_work.deliveries import AT_ONCE, Deliveries, delivering

NOW = dt.datetime(2026, 3, 1, 6, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
A, B, C = (TableName(LAKE, ("shop",), name) for name in "abc")


def sink(name: str, stream: TableName, **given: object) -> Sink:
    made = Sink(
        name=name,
        uuid=name,
        kind="postgres",
        stream=stream,
        options={"url": "here"},
        schedule=None,
        status=SinkStatus.ACTIVE,
        version=3,
        rows=1,
        written_at=NOW - 60 * SECOND,
        stopped_code=None,
        stopped_reason=None,
        failures=0,
        retry_at=None,
        failure=None,
        created_at=NOW,
    )
    return replace(made, **given)  # type: ignore[arg-type]


def test_sinks_of_a_group_into_one_database_are_one_batch() -> None:
    units = {A: B, B: B, C: C}
    found = batches(
        [sink("a", A), sink("b", B), sink("c", C), sink("elsewhere", A, options={"url": "there"})],
        units.__getitem__,
        lambda of: str(of.options["url"]),
    )
    assert [batch.name for batch in found] == ["a, b", "c", "elsewhere"]


@pytest.mark.parametrize(
    ("given", "newest", "expected"),
    [
        ({}, 3, None),
        ({}, 4, NOW - 5 * SECOND),
        ({"version": None}, 0, NOW),
        ({"schedule": "MANUAL"}, 4, None),
        ({"schedule": "1 minute"}, 4, NOW + 55 * SECOND),
        ({"schedule": "@hourly", "written_at": NOW}, 4, NOW + 3600 * SECOND),
        ({"retry_at": NOW + 9 * SECOND}, 4, NOW + 9 * SECOND),
        ({"retry_at": NOW + 900 * SECOND}, 4, NOW - 5 * SECOND),  # by a clock that was ahead
        ({"status": SinkStatus.PAUSED}, 4, None),
        ({"status": SinkStatus.STOPPED}, 4, None),
    ],
)
def test_when_a_sink_is_due(given: dict[str, object], newest: int, expected: dt.datetime | None) -> None:
    batch = Batch("postgres", "here", (sink("a", A, **given),))
    behind = None if newest == 3 else NOW - 5 * SECOND
    assert batch_due(batch, {A: newest}, lambda _: behind, NOW) == expected


def test_a_batch_waits_for_a_member_that_is_held() -> None:
    batch = Batch("postgres", "here", (sink("a", A), sink("b", B, status=SinkStatus.STOPPED)))
    assert batch_due(batch, {A: 4, B: 4}, lambda _: NOW, NOW) is None
    assert batch.held is not None
    assert batch.held.name == "b"


def test_a_batch_waits_for_a_member_whose_schedule_is_not_known_here() -> None:
    batch = Batch("postgres", "here", (sink("a", A), sink("b", B, schedule="0 6 * * * Europe/Atlantis")))
    assert batch_due(batch, {A: 4, B: 4}, lambda _: NOW, NOW) is None


@dataclass
class Work:
    name: str


def test_a_target_that_hangs_holds_up_nobody() -> None:
    free, twice = threading.Event(), threading.Event()
    begun: list[str] = []

    def due() -> Sequence[Work]:
        return [Work("hangs"), Work("fails"), Work("runs")]

    def write(work: Work) -> None:
        begun.append(work.name)
        if work.name == "hangs":
            free.wait(30)
        if work.name == "fails":
            raise EnvironmentFault("SINK_UNREACHABLE", "It is away.", retryable=True)
        if begun.count("runs") > 1 and begun.count("fails") > 1:
            twice.set()

    events, told = Events(), list[Notice]()
    events.subscribe(lambda event: told.append(event) if isinstance(event, Notice) else None)
    with delivering(due, write, events, lambda: Patience(events, 180), tuple):
        assert twice.wait(30)
        free.set()
    assert begun.count("hangs") < begun.count("runs"), "what is being written is not begun again"
    assert not told, "whoever writes tells of failures of sinks"


def test_a_catalog_that_is_away_is_told_of_here_only_where_refreshes_do_not_meet_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events, told, away = Events(), list[str](), [True]
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    begun, sinks = list[str](), [Work("a"), Work("b")]

    def write(work: Work) -> None:
        begun.append(work.name)
        raise EnvironmentFault("CATALOG_READ_ONLY", "It cannot be written.", retryable=True)

    def tried() -> None:
        deliveries.begin()
        until(lambda: not deliveries._running)

    deliveries = Deliveries(lambda: sinks, write, events, lambda: sinks, lambda: away[0])
    tried()
    away[0] = False  # refreshes have met it, or are about to
    tried()
    assert (len(begun), told) == (4, [])
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.workers.UNTOLD", 0.0)
    tried()
    tried()
    assert len(told) == 1
    deliveries.end(Patience(events, 60))


def test_what_failed_and_was_dropped_is_forgotten() -> None:
    events, told = Events(), list[str]()
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    sinks = [Work("a"), Work("b")]

    def write(work: Work) -> None:
        raise EnvironmentFault("STORE_UNAVAILABLE", "The store is away.", retryable=True)

    def tried(*due: Work) -> None:
        deliveries_due[:] = due
        deliveries.begin()
        until(lambda: not deliveries._running)

    deliveries_due = list[Work]()
    deliveries = Deliveries(lambda: deliveries_due, write, events, lambda: sinks)
    tried(sinks[0])
    tried()  # it waits for another try
    tried(sinks[0])
    assert len(told) == 1
    del sinks[0]
    tried(sinks[0])
    assert len(told) == 2
    deliveries.end(Patience(events, 60))


def test_an_outage_is_told_once_for_all_sinks_and_nothing_is_begun_at_the_end() -> None:
    events, told, at_once, free = Events(), list[str](), threading.Event(), threading.Event()
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    begun, sinks = list[str](), [Work(f"sink {number}") for number in range(3 * AT_ONCE)]

    def write(work: Work) -> None:
        begun.append(work.name)
        if work in sinks[:3]:
            raise EnvironmentFault("STORE_UNAVAILABLE", "It is away.", retryable=True)
        free.wait(60)

    deliveries = Deliveries(lambda: sinks, write, events, lambda: sinks)
    deliveries.begin()
    until(lambda: len(begun) == 3 + AT_ONCE)
    assert len(told) == 1
    at_once.set()
    deliveries.end(Patience(events, 600, at_once))
    free.set()
    until(lambda: not any(thread.is_alive() for thread in deliveries._threads))
    assert len(begun) == 3 + AT_ONCE


def test_what_breaks_is_told_once_until_it_goes_well_and_writing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.deliveries.LOOK", 0.01)
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.deliveries.LONGEST", 0.01)
    events, told, looks, written = Events(), list[str](), [0], threading.Event()
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)

    def due() -> Sequence[Work]:
        looks[0] += 1
        if looks[0] in (1, 2, 4):
            raise KeyError("oid")
        if looks[0] == 6:
            written.set()
        return []

    def write(_: Work) -> None:
        pass

    with delivering(due, write, events, lambda: Patience(events, 180), tuple):
        assert written.wait(60)
    assert ["SINK_BROKE" in text for text in told] == [True, True]


def test_a_target_that_hangs_at_the_end_is_left_to_itself() -> None:
    begun, free, at_once, events = threading.Event(), threading.Event(), threading.Event(), Events()
    told, patience = list[str](), Patience(events, 600, at_once)
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)

    def write(_: Work) -> None:
        begun.set()
        free.wait(60)

    since = time.monotonic()
    with delivering(lambda: [Work("hangs")], write, events, lambda: patience, tuple):
        assert begun.wait(30)
        events.subscribe(lambda event: at_once.set() if isinstance(event, Notice) else None)  # whoever reads it hurries
    assert time.monotonic() - since < 30
    assert ["the writing of hangs" in text for text in told] == [True]
    free.set()
