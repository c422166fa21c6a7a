"""A reader in another process polls a diamond through pinned states, as it is and as it was, while it is refreshed."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from catalog_kit.forking import forking
from kit.long_tests import LONG
from kit.pipelines import Lake, PublishingWorker, contents, define, mixed, scheduler
from kit.waiting import running

from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.schedule import Kind, Schedule

AT_ONCE = Schedule("ON CHANGE", 0, Kind.ON_CHANGE)
CYCLES = 500 if LONG else 80
STEPS = 50 * CYCLES
"""So many changes of the source at the most, until these are done; on a quiet machine it takes a few for each."""

MEMBERS = ("b", "c", "x", "d")
LOOKS_BACK = 5
"""So many publications at the most, each other time by when it was."""


def poll(
    url: str, folder: Path, found: multiprocessing.Queue[int], stop: threading.Event, seen: Any, mixtures: Any
) -> None:
    """Count looks at what is and, in `seen`, at what was, and those that saw tables that do not fit together."""
    looks = 0
    lake = Lake(url, folder)
    with Catalog.open(url) as catalog:
        while not stop.is_set():
            looks += 1
            mixtures.value += mixed(*contents(lake, catalog, *MEMBERS))
            if looks % 4 == 0:
                with catalog.reading() as reader:
                    then = reader.publications(LOOKS_BACK)[-1]
                when = then.id if looks % 8 else then.published_at
                try:
                    mixtures.value += mixed(*contents(lake, catalog, *MEMBERS, when=when))
                except UserError as error:  # it stood still, while that was published ever longer ago
                    if error.code != "HISTORY_EXPIRED":
                        raise
                else:
                    seen.value += 1
    found.put(looks)


@pytest.mark.parametrize("consistency", ["atomic", "none"])
def test_a_mixture_is_seen_only_where_it_is_allowed(tmp_path: Path, consistency: str) -> None:
    """Where it is allowed, the reader has to see one: else it would not see others either."""
    url = f"sqlite:///{tmp_path / 'headrace.db'}"
    lake, stopping = Lake(url, tmp_path), threading.Event()
    atomic = consistency == "atomic"
    enough, cycles = (CYCLES, CYCLES) if atomic else (CYCLES // 4 * len(MEMBERS), CYCLES // 4)
    with Catalog.open(url) as catalog:
        lake.base("s.a")
        define(catalog, "b: a; c: a; x: c; d: b x", d={"diamond_consistency": consistency})
        worker = PublishingWorker(lake, catalog, seconds=lambda name: 0.005 if name.table == "c" else 0.0)
        scheduler(catalog, worker, default_schedule=AT_ONCE).run(stopping, once=True)
        found, stop = forking().Queue(), forking().Event()
        seen, mixtures = (forking().Value("i", 0) for _ in range(2))
        reader = forking().Process(target=poll, args=(url, tmp_path, found, stop, seen, mixtures), daemon=True)
        reader.start()
        with running(scheduler(catalog, worker, default_schedule=AT_ONCE, poll=0.002).run, grace=600):
            for _ in range(STEPS):
                if len(worker.ran) >= enough and seen.value > cycles // 4 and (atomic or mixtures.value):
                    break
                assert reader.is_alive()
                lake.base("s.a")
                time.sleep(0.02)
        stop.set()
        looks = found.get(timeout=600)
        reader.join(600)
    assert len(worker.ran) >= enough
    assert (looks > cycles, seen.value > cycles // 4) == (True, True)
    assert (mixtures.value == 0) == atomic, f"{mixtures.value} of {looks}"
