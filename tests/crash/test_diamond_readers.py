"""A reader in another process polls a diamond through pinned states, hundreds of times, while it is refreshed."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path

import pytest
from catalog_kit.killed import _context
from kit.pipelines import Lake, PublishingWorker, contents, define, mixed, scheduler

from headrace.catalog import Catalog
from headrace.schedule import Kind, Schedule

AT_ONCE = Schedule("ON CHANGE", 0, Kind.ON_CHANGE)
CYCLES = 60


def poll(url: str, folder: Path, found: multiprocessing.Queue[tuple[int, int]], stop: object) -> None:
    """Count looks, and those that saw tables that do not fit together."""
    looks = mixtures = 0
    lake = Lake(url, folder)
    with Catalog.open(url) as catalog:
        while not stop.is_set():  # type: ignore[attr-defined]
            looks += 1
            mixtures += mixed(*contents(lake, catalog, "b", "c", "x", "d"))
    found.put((looks, mixtures))


@pytest.mark.parametrize("consistency", ["atomic", "none"])
def test_a_mixture_is_seen_only_where_it_is_allowed(tmp_path: Path, consistency: str) -> None:
    url = f"sqlite:///{tmp_path / 'headrace.db'}"
    lake, stopping = Lake(url, tmp_path), threading.Event()
    with Catalog.open(url) as catalog:
        lake.base("s.a")
        define(catalog, "b: a; c: a; x: c; d: b x", d={"diamond_consistency": consistency})
        worker = PublishingWorker(lake, catalog, seconds=lambda name: 0.005 if name.table == "c" else 0.0)
        scheduler(catalog, worker, default_schedule=AT_ONCE).run(stopping, once=True)
        found, stop = _context.Queue(), _context.Event()
        reader = _context.Process(target=poll, args=(url, tmp_path, found, stop), daemon=True)
        reader.start()
        runs = threading.Thread(
            target=lambda: scheduler(catalog, worker, default_schedule=AT_ONCE, poll=0.002).run(stopping)
        )
        runs.start()
        end = time.monotonic() + 90
        while worker.ran.count(worker.ran[-1]) < CYCLES and len(worker.ran) < 4 * CYCLES and time.monotonic() < end:
            lake.base("s.a")
            time.sleep(0.01)
        stopping.set()
        runs.join(20)
        stop.set()
        looks, mixtures = found.get(timeout=20)
        reader.join(20)
    assert len(worker.ran) >= CYCLES
    assert looks > 100
    assert bool(mixtures) == (consistency == "none"), f"{mixtures} of {looks}"
