"""How a run ends: what it waits for, what it says of that, and what a second Ctrl-C does."""

import signal
import threading
import time
from contextlib import contextmanager

import pytest
from kit.pipelines import Lake, PublishingWorker, define, roots, scheduler
from kit.waiting import until

from headrace.api.schedules.run_schedules import _signals
from headrace.catalog import Catalog
from headrace.events import Events, Notice
from headrace.scheduler.patience import Patience


class Ending:
    """A scheduler that runs in a thread, and what it says."""

    def __init__(self, catalog, worker, **rules):
        self.stopping, self.at_once, self.said = threading.Event(), threading.Event(), []
        events = Events()
        events.subscribe(lambda event: self.said.append(event.message) if isinstance(event, Notice) else None)
        run = scheduler(catalog, worker, events, **rules).run
        self.thread = threading.Thread(target=lambda: run(self.stopping, at_once=self.at_once), daemon=True)
        self.thread.start()

    def ended(self) -> bool:
        self.thread.join(180)
        return not self.thread.is_alive()


def maintaining(worker, free):
    """Have a worker's maintenance of a table last until it is freed; return what is set when it has begun."""
    begun = threading.Event()

    def maintain(wanted, waits):
        for table in worker.catalog.stream_tables():
            if wanted(table.name):
                begun.set()
                free.wait(180)
        return ()

    worker.maintain = maintain
    return begun


def test_maintenance_is_waited_for_and_told(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a")
    worker, free = PublishingWorker(lake_, catalog), threading.Event()
    begun = maintaining(worker, free)
    run = Ending(catalog, worker, maintenance=3600.0, grace=60.0)
    assert begun.wait(180)
    run.stopping.set()
    until(lambda: run.said)
    assert run.said == ["Stopping; waiting up to 60 s for the maintenance of s.b. Press Ctrl-C to stop at once."]
    assert run.thread.is_alive()
    free.set()
    assert run.ended()


@pytest.mark.parametrize("hurry", [False, True])
def test_maintenance_is_left_after_the_grace_time_or_a_second_ctrl_c(lake_, catalog, hurry):
    lake_.base("s.a")
    define(catalog, "b: a")
    worker, free = PublishingWorker(lake_, catalog), threading.Event()
    begun = maintaining(worker, free)
    run = Ending(catalog, worker, maintenance=3600.0, grace=180.0 if hurry else 0.2)
    assert begun.wait(180)
    since = time.monotonic()
    run.stopping.set()
    if hurry:
        until(lambda: run.said)
        run.at_once.set()
    assert run.ended()
    assert time.monotonic() - since < 90
    free.set()


def test_a_second_ctrl_c_cancels_what_is_refreshed(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: b")
    begun = threading.Event()
    worker = PublishingWorker(lake_, catalog, seconds=lambda _: 180, fails=lambda _: begun.set())
    run = Ending(catalog, worker, grace=60.0)
    assert begun.wait(180)
    run.stopping.set()
    until(lambda: run.said)
    assert run.said == ["Stopping; waiting up to 60 s for the refresh of s.b. Press Ctrl-C to stop at once."]
    run.at_once.set()
    assert run.ended()
    assert worker.ran == []


class Lingering(PublishingWorker):
    """A worker of which the first two tables are written, and do not end before they are freed."""

    def __init__(self, lake, catalog):
        super().__init__(lake, catalog)
        self.written, self.free = threading.Semaphore(0), threading.Event()

    @contextmanager
    def computing(self, name):
        with super().computing(name):
            yield
            self.written.release()
            assert self.free.wait(180)


@pytest.mark.parametrize("ends", ["the outage", "the grace time", "a second Ctrl-C"])
def test_a_group_under_way_ends_although_the_catalog_does_not_answer(postgres, tmp_path, monkeypatch, ends):
    monkeypatch.setattr("headrace.scheduler.membership.BEAT_SECONDS", 0.2)
    lake_ = Lake(postgres.fresh(), tmp_path)
    with Catalog.open(lake_.url) as catalog:
        lake_.base("s.a")
        define(catalog, "b: a; c: a; d: b c")
        worker = Lingering(lake_, catalog)
        run = Ending(catalog, worker, grace=2.0 if ends == "the grace time" else 180.0)
        assert worker.written.acquire(timeout=180)
        assert worker.written.acquire(timeout=180)
        with postgres.outage():
            until(lambda: any("does not answer" in said for said in run.said))
            since = time.monotonic()
            run.stopping.set()
            until(lambda: any("Stopping" in said for said in run.said))
            worker.free.set()  # of the group only d is left, which must not begin before the catalog answers
            if ends == "a second Ctrl-C":
                run.at_once.set()
            if ends != "the outage":
                assert run.ended()
                assert time.monotonic() - since < 90
        assert run.ended()
        assert roots(lake_, catalog).keys() == (set("bcd") if ends == "the outage" else set())
        for left in catalog.schedulers():  # as its process, of which others would see that it is gone, is this one
            catalog.unregister_scheduler(left.owner)
        stopping = threading.Event()
        until(lambda: scheduler(catalog, worker, ahead=60).run(stopping, once=True) and len(worker.ran) == 1)
        assert roots(lake_, catalog) == {name: {"a": {0}} for name in "bcd"}


def test_who_has_nothing_to_wait_for_says_nothing():
    said = []
    events = Events()
    events.subscribe(said.append)
    patience = Patience(events, 60.0)
    patience.begin(())
    assert patience.wait_for(None, "maintenance")
    assert (said, patience.over) == ([], False)


def test_signals_end_it_by_and_by():
    stopping, at_once = threading.Event(), threading.Event()
    with _signals(stopping, at_once):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert (stopping.is_set(), at_once.is_set()) == (True, False)
        signal.raise_signal(signal.SIGINT)
        assert at_once.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
