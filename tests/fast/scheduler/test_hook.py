"""A function of the user's that is told what happens; slow, hanging and failing ones are in nobody's way."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from catalog_kit.ready import ready_project
from kit.pipelines import Lake, PublishingWorker, define, scheduler

import headrace
from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.events import Event, Events, Notice, StageStarted, Suspended
from headrace.observability.event_hook import Hook, load_hook


def test_it_is_called_with_each_event_in_order() -> None:
    events, heard, threads = Events(), [], set()
    with Hook(lambda told: (heard.append(told), threads.add(threading.current_thread())), events):
        events.emit(Suspended("s.b", 5, "E", "why"))
        events.emit(StageStarted("s.b", "compute"))  # of interest only while it happens
        events.emit(Notice("hello"))
    events.emit(Notice("after the end"))
    assert [told["event"] for told in heard] == ["suspended", "notice"]
    assert (heard[0]["table"], heard[0]["failures"]) == ("s.b", 5)
    assert threads.isdisjoint({threading.current_thread()})


def test_one_that_raises_is_told_once_and_called_again() -> None:
    events, heard, told = Events(), [], list[Event]()
    events.subscribe(told.append)

    def fail(document: dict[str, object]) -> None:
        heard.append(document["event"])
        raise ValueError("not today")

    with Hook(fail, events):
        for _ in range(3):
            events.emit(Suspended("s.b", 5, "E", "why"))
    assert heard.count("suspended") == 3
    assert ["not today" in e.message for e in told if isinstance(e, Notice)] == [True]


def test_one_that_raises_again_after_it_went_well_is_told_again() -> None:
    events, told, fails = Events(), list[str](), [True, True, False, True]
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)

    def fail(document: dict[str, object]) -> None:
        if document["event"] == "suspended" and fails.pop(0):
            raise ValueError("not today")

    with Hook(fail, events):
        for _ in range(4):
            events.emit(Suspended("s.b", 5, "E", "why"))
    assert len(told) == 2


def test_one_that_hangs_holds_no_refresh_up(lake_: Lake, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.observability.event_delivery.PATIENCE_SECONDS", 0.2)
    lake_.base("s.a")
    define(catalog, "b: a; c: b")
    events, free, called = Events(), threading.Event(), threading.Event()
    worker = PublishingWorker(lake_, catalog)
    begun = time.monotonic()
    with Hook(lambda _: (called.set(), free.wait(60)), events):
        assert scheduler(catalog, worker, events).run(threading.Event(), once=True).refreshed == 2
        for number in range(1500):
            events.emit(Notice(str(number)))
        assert called.wait(180)
    assert time.monotonic() - begun < 60
    free.set()


def test_it_may_end_itself() -> None:
    events, heard = Events(), []
    hook = Hook(lambda told: (heard.append(told), hook.end()), events)
    with hook:
        events.emit(Notice("first"))
        hook._thread.join(180)
        events.emit(Notice("second"))
    assert [told["message"] for told in heard] == ["first"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    ready_project(tmp_path / "shop")
    return tmp_path / "shop"


def test_a_project_calls_it_until_it_is_closed(project: Path) -> None:
    heard: list[str] = []
    with headrace.open(project) as hr:
        hr.on_event(lambda told: heard.append(told["event"]))
        end = hr.on_event(lambda told: heard.append(told["event"].upper()))
        hr.run(once=True)
        end()
        hr.run(once=True)
    both = ["scheduler_started", "scheduler_stopped"]
    assert [event for event in heard if event.islower()] == 2 * both
    assert [event for event in heard if event.isupper()] == [event.upper() for event in both]


def test_a_setting_names_it(project: Path) -> None:
    (project / "tell_the_team.py").write_text("class Team:\n    heard = []\n    tell = heard.append\n")
    file = project / "headrace.toml"
    file.write_text(file.read_text().replace("[headrace]", "[headrace]\non_event = 'tell_the_team:Team.tell'"))
    with headrace.open(project) as hr:
        hr.run(once=True)
    heard = sys.modules["tell_the_team"].Team.heard
    assert [told["event"] for told in heard] == ["scheduler_started", "scheduler_stopped"]


@pytest.mark.parametrize("text", ["no_such_module:f", "json:no_such_function", "json:__name__", "broken_hooks:f"])
def test_what_cannot_be_called_is_refused(project: Path, text: str) -> None:
    (project / "broken_hooks.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        load_hook(text, project)
