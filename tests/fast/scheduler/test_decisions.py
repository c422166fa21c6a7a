"""What users decide in other processes reaches whoever is told what happens, once."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_kit.ready import ready_project
from kit.pipelines import Lake, define

import headrace
from headrace.catalog import Catalog
from headrace.config import load
from headrace.errors import EnvironmentFault
from headrace.events import (
    DECISIONS,
    Event,
    Events,
    FuseResolved,
    GateClosed,
    Paused,
    Resumed,
    event_of,
    fields_of,
    kind_of,
)
from headrace.scheduler.user_decisions import Decisions


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_who_is_told_what_happens_is_told_what_others_decide(tmp_path: Path) -> None:
    root = ready_project(tmp_path / "shop").root
    url = f"sqlite:///{root / 'headrace.db'}"
    Lake(url, tmp_path).base("s.a", "s.z")
    with Catalog.open(url) as catalog:
        define(catalog, "b: a; c: b z", {"*": "MANUAL"})
    heard: list[tuple[str, object]] = []
    stopping = threading.Event()
    idle = replace(load(root), maintenance_every="never")  # which would start Spark
    with headrace.open(idle) as runs, headrace.open(root) as decides:
        decides.pause("s.b")  # before it began
        runs.on_event(lambda told: heard.append((told["event"], told)))
        thread = threading.Thread(target=lambda: runs.run(stopping=stopping))
        thread.start()
        until(lambda: "scheduler_started" in dict(heard))
        decides.pause(["s.b", "s.c"])
        decides.resume("s.c")
        decides.close_gate("s.a")
        decides.open_gate()
        decides.create_watermark_group("loads", ["s.a", "s.z"], "5 minutes")
        decides.advance_watermark("s.a", "2026-03-01T06:00:00Z")
        decides._decided(FuseResolved("s.b", "apply"))
        until(lambda: "fuse_resolved" in dict(heard))
        stopping.set()
        thread.join(60)
        kept = [event.event for event in runs.event_log(limit=1000)]
    told = [event for event, _ in heard if event in DECISIONS]
    assert told == ["paused", "resumed", "gate_closed", "gate_opened", "watermark_advanced", "fuse_resolved"]
    assert dict(heard)["paused"]["tables"] == ["s.b", "s.c"]  # type: ignore[index]
    assert [kept.count(event) for event in told] == [2, 1, 1, 1, 1, 1]  # as they were decided, and not once more


@pytest.fixture
def decided(catalog: Catalog) -> Callable[[Event], None]:
    """Writes a decision down, as who decides does."""
    now = dt.datetime.now(dt.UTC)
    return lambda event: catalog.write_events([(now, kind_of(event), fields_of(event))])


def listener(catalog: Catalog) -> tuple[Decisions, list[Event]]:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    return Decisions(catalog, events, 0.0), told


def test_of_several_schedulers_the_first_tells(catalog: Catalog, decided: Callable[[Event], None]) -> None:
    (first, heard), (second, heard_too) = listener(catalog), listener(catalog)
    first.elect(True)
    first.tell()
    second.elect(False)
    decided(Paused(("s.b",)))
    first.tell()
    second.tell()
    second.elect(False)
    decided(Resumed(("s.b",)))  # the first one ends without having seen it
    second.tell()
    second.elect(True)
    second.tell()
    second.tell()
    assert (heard, heard_too) == ([Paused(("s.b",))], [Resumed(("s.b",))])


def test_a_decision_is_read_as_it_was_written() -> None:
    for event in (Paused(("s.b",)), GateClosed(("s.a", "s.z")), FuseResolved("s.b", "skip")):
        assert event_of(kind_of(event), fields_of(event)) == event
    assert event_of("moved_on", {}) is None
    assert event_of("paused", {"table": "s.b"}) is None


def test_what_is_decided_while_the_log_cannot_be_read_is_not_lost(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    decisions = Decisions(catalog, events, 0.0)
    decisions.tell()
    with monkeypatch.context() as patch:
        patch.setattr(type(catalog), "events", _unreachable)
        decisions.elect(False)
    paused = Paused(("s.b",))
    catalog.write_events([(dt.datetime.now(dt.UTC), kind_of(paused), fields_of(paused))])
    decisions.elect(True)
    decisions.tell(at_once=True)
    assert [kind_of(event) for event in told] == ["paused"]


def _unreachable(*_: object, **__: object) -> None:
    raise EnvironmentFault("CATALOG_UNREACHABLE", "It is away.", retryable=True)
