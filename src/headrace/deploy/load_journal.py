"""Keeps how far first loads of second generations are, so that other processes can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from headrace.catalog import Catalog
from headrace.clock import Clock
from headrace.errors import HeadraceError
from headrace.events import Event, Events, RefreshStarted, StageFinished, StageStarted
from headrace.names import TableName


@dataclass(slots=True)
class _Load:
    name: TableName
    begun: str
    stage: str | None = None
    ended: dict[str, float] = field(default_factory=dict)


@contextmanager
def noting_loads(catalog: Catalog, events: Events, clock: Clock) -> Iterator[None]:
    """Write down how far first loads of second generations are, while the block runs.

    A few small writes a load; a catalog that does not answer never holds one up.

    Args:
        catalog: Where it is kept.
        events: What is listened to.
        clock: Tells the time.
    """
    loads: dict[str, _Load] = {}

    def note(event: Event) -> None:
        if isinstance(event, RefreshStarted):
            loads.pop(event.table, None)
            if event.mode == "FULL" and (name := _unloaded(catalog, event.table)) is not None:
                loads[event.table] = _Load(name, clock.now().isoformat())
        elif isinstance(event, StageStarted) and event.table in loads:
            loads[event.table].stage = event.stage
        elif isinstance(event, StageFinished) and event.table in loads:
            loads[event.table].ended[event.stage] = round(event.seconds, 3)
        else:
            return
        if (load := loads.get(event.table)) is not None:
            ended, now = dict(load.ended), clock.now().isoformat()
            stage = None if load.stage in ended else load.stage
            with suppress(HeadraceError):
                catalog.note_load(load.name, {"begun": load.begun, "noted": now, "stage": stage, "ended": ended})

    unsubscribe = events.subscribe(note)
    try:
        yield
    finally:
        unsubscribe()


def _unloaded(catalog: Catalog, table: str) -> TableName | None:
    """Return the second generation of that name if it has no rows yet."""
    with suppress(HeadraceError), catalog.reading() as reader:
        name = next((green.name for green in reader.greens() if str(green.name) == table), None)
        return None if name is None or name in reader.newest_versions() else name
    return None
