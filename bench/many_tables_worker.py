"""One process of `bench.many_tables`: a scheduler without Spark, or a look at all tables."""

from __future__ import annotations

import gc
import json
import resource
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from kit.pipelines import Lake, PublishingWorker, scheduler
from sqlalchemy import event
from sqlalchemy.engine import Engine

import headrace
from headrace.catalog import Catalog
from headrace.cli.start import COLLECT_AFTER
from headrace.config import load

SLOTS = 4
"""Refreshes at once for each scheduler; all of a project share the sum."""

AHEAD = 10.0
"""Seconds by which the clock of a look is ahead, so that nothing is too young to be looked at."""


def main() -> None:
    """Do one thing, and print what it took."""
    gc.set_threshold(*COLLECT_AFTER)  # as the command does
    root, kind = Path(sys.argv[1]), sys.argv[2]
    settings, sent, stopping = load(root), Counter[str](), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    slots = SLOTS * int(sys.argv[3])

    @event.listens_for(Engine, "before_cursor_execute")
    def _note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent["statements"] += 1

    if kind == "status":
        gc.disable()  # as it does then
        with headrace.open(settings) as hr:
            report(sent, lambda: {"rows": len(hr.status())})
        return
    with Catalog.open(settings.catalog_url) as catalog:
        lake = Lake(settings.catalog_url, root)
        worker = PublishingWorker(lake, catalog)

        def cycle(ahead: float = 0.0, *, once: bool = True) -> dict[str, float]:
            done = scheduler(catalog, worker, ahead=ahead, slots=slots).run(stopping, once=once)
            return {"refreshed": done.refreshed, "failed": done.failed}

        if kind == "load":
            report(sent, lambda: cycle(once=False))
            return
        begun = time.perf_counter()
        cycle(AHEAD)
        first = time.perf_counter() - begun
        if kind == "change":
            lake.base("s.base00000")
        report(sent, lambda: cycle(2 * AHEAD), first=first)


def report(sent: Counter[str], act: Callable[[], Mapping[str, float]], **more: float) -> None:
    """Run something, and print seconds, processor seconds, statements and the most memory that this process had."""
    before = sent["statements"]
    wall, spent = time.perf_counter(), time.process_time()
    found = act()
    figures = {
        "seconds": time.perf_counter() - wall,
        "processor": time.process_time() - spent,
        "statements": sent["statements"] - before,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps({**figures, **found, **more}))


if __name__ == "__main__":
    main()
