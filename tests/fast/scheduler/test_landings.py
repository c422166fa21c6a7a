"""Landing beside schedules: what goes wrong is told and tried again, and nobody waits for it at the end."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest
from kit.waiting import until

from headrace.catalog import DatabaseSource, SourceStatus
from headrace.errors import EnvironmentFault
from headrace.events import Event, Events, Notice, RefreshFailed, RefreshFinished
from headrace.scheduler.lost_spark import LostSpark
from headrace.scheduler.patience import Patience
from headrace.scheduler.source_and_sink_work.landings import land_once, landing


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.landings.LANDING_PAUSE", 0.0)
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.landings.FAILED_PAUSE", 0.0)


def heard(events: Events) -> list[str]:
    told: list[str] = []

    def note(event: Event) -> None:
        assert isinstance(event, Notice)
        told.append(event.message)

    events.subscribe(note)
    return told


@dataclass
class Shop:
    """One source, landed by a function."""

    land: Callable[[threading.Event], None]

    def due(self) -> list[DatabaseSource]:
        now = dt.datetime.now(dt.UTC)
        return [DatabaseSource("shop", "postgres", {}, {}, SourceStatus.ACTIVE, None, None, None, now, ())]

    def land_due(self, _: str, until: threading.Event, using: Callable[[], AbstractContextManager[object]]) -> None:
        with using():
            self.land(until)


def patient() -> Patience:
    return Patience(Events(), 180)


def test_what_nobody_foresaw_is_told_once_and_landing_goes_on() -> None:
    events, calls, often = Events(), [], threading.Event()
    told = heard(events)

    def land(_: threading.Event) -> None:
        calls.append(1)
        if len(calls) == 5:
            often.set()
        raise KeyError("oid")

    with landing(Shop(land), events, LostSpark(events), patient):
        assert often.wait(180)
    assert ["LANDING_BROKE" in text for text in told] == [True]


def test_what_was_landed_is_told_at_once_and_the_next_landing_begins_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.scheduler.source_and_sink_work.landings.LANDING_PAUSE", 60.0)
    events, calls, woken, idle = Events(), [], [], threading.Event()

    def land(_: threading.Event) -> None:
        calls.append(1)
        if len(calls) < 3:
            events.emit(RefreshFinished("shop", "LAND", 1, 0, 0.1))
        else:
            idle.set()

    events.subscribe(lambda _: None)
    with landing(Shop(land), events, LostSpark(events), patient, lambda: woken.append(1)):
        assert idle.wait(180)
        events.emit(RefreshFinished("shop.revenue", "DIFFERENTIAL", 1, 0, 0.1))
    assert (len(calls), len(woken)) == (3, 2)


def test_an_end_reaches_a_landing_that_is_under_way() -> None:
    begun = threading.Event()

    def land(ended: threading.Event) -> None:
        begun.set()
        assert ended.wait(180)

    with landing(Shop(land), Events(), LostSpark(Events()), patient):  # the block is entered while the first still runs
        assert begun.wait(180)


def test_a_landing_that_does_not_end_is_left_to_itself() -> None:
    begun, free, at_once, events = threading.Event(), threading.Event(), threading.Event(), Events()
    told, patience = heard(events), Patience(events, 600, at_once)

    def land(_: threading.Event) -> None:
        begun.set()
        free.wait(60)

    since = time.monotonic()
    with landing(Shop(land), events, LostSpark(events), lambda: patience):
        assert begun.wait(180)
        events.subscribe(lambda event: at_once.set() if isinstance(event, Notice) else None)  # whoever reads it hurries
    assert time.monotonic() - since < 30
    assert ["the landing of shop" in text for text in told] == [True]
    free.set()


def test_a_spark_that_is_lost_for_landings_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.scheduler.lost_spark.PATIENCE_SECONDS", 0.0)
    calls, often = [], threading.Event()
    spark = LostSpark(Events())

    def land(_: threading.Event) -> None:
        calls.append(1)
        if len(calls) == 5:
            often.set()
        raise EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True)

    with landing(Shop(land), Events(), spark, patient):
        assert often.wait(180)
    assert spark.gone is not None


def test_a_spark_that_landings_have_used_since_is_lost_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.scheduler.lost_spark.PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr("headrace.scheduler.lost_spark.PAUSE_SECONDS", 0.01)
    events, landed = Events(), threading.Event()
    spark, lost = LostSpark(events), EnvironmentFault("SPARK_LOST", "It is gone.", retryable=True)

    def land(_: threading.Event) -> None:
        events.emit(RefreshFinished("shop", "LAND", 1, 0, 0.1))
        landed.set()

    for _ in range(2):
        spark.lost(lost)
        until(lambda: not spark.away)
        landed.clear()
        with landing(Shop(land), events, spark, patient):
            assert landed.wait(180)
        time.sleep(1.1)
    assert spark.gone is None


def test_who_was_faster_is_no_failure() -> None:
    events = Events()
    told = heard(events)
    assert land_once(lambda: EnvironmentFault("LEASE_HELD", "Somebody lands it."), events) is None
    failure = EnvironmentFault("SOURCE_UNREACHABLE", "It is down.", retryable=True)
    assert land_once(lambda: failure, events) is failure
    assert len(told) == 1


def test_a_reason_that_was_told_is_not_told_again() -> None:
    events = Events()
    failure = EnvironmentFault("SOURCE_UNREACHABLE", "It is down.", retryable=True)

    def land() -> EnvironmentFault:
        events.emit(RefreshFailed("shop", failure.code, failure.message))
        return failure

    told: list[Event] = []
    events.subscribe(told.append)
    land_once(land, events)
    assert [isinstance(e, Notice) and failure.message in e.message for e in told] == [False, False]
