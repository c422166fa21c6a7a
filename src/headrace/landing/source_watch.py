"""Watches what servers keep for sources, and warns before a server gives it up."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.events import Notice, SlotRunningOut
from headrace.sources.registry import kind_of
from headrace.sources.source_kind import OUT_OF_REACH

if TYPE_CHECKING:
    from headrace.catalog import Catalog, DatabaseSource
    from headrace.events import Events
    from headrace.landing.landing_attempt import Open
    from headrace.sources.source_kind import Json

EVERY = 30.0
"""Seconds between two looks at a source, at least."""

LONGEST = 3600.0
"""Seconds between two attempts to remove what is left over, at most: its server may be gone for good."""


class SourceWatch:
    """Look at the servers of a project's sources.

    Args:
        catalog: Remembers looks.
        events: Told of what runs out; once, until it is well again.
        open_capture: Opens captures, to remove what is left over of them.
    """

    def __init__(self, catalog: Catalog, events: Events, open_capture: Open) -> None:
        self._catalog = catalog
        self._events = events
        self._open_capture = open_capture
        self._left: dict[str, tuple[float, float]] = {}
        self._told: set[str] = set()
        self._looked: dict[str, float] = {}
        self._warned: set[str] = set()

    def landed(self, name: str, failure: HeadraceError | None) -> None:
        """Look at a source that was just landed, or could not be, unless that was done a moment ago.

        One that is landed counts as read: where nothing was committed for long, its server would take it for idle.
        """
        if time.monotonic() - self._looked.get(name, -EVERY) < EVERY:
            return
        if failure is not None and failure.code in OUT_OF_REACH:
            return
        self._looked[name] = time.monotonic()
        with suppress(HeadraceError):  # it was landed, or its failure is told: a look is worth no other one
            from headrace.catalog import SourceStatus

            with self._catalog.reading() as reader:
                source = reader.find_source(name)
            if source is None:
                return
            if source.captures:
                self._see_to_left(source)
            landing = failure is None and source.status is SourceStatus.ACTIVE
            now = kind_of(source.kind).look(source, landed=landing)
            if now is not None:
                self.seen(source, now)

    def _see_to_left(self, source: DatabaseSource) -> None:
        """Remove what is left over on servers, unless that failed a while ago."""
        from headrace.landing.left_captures import remove_left, told_of

        due, pause = self._left.get(source.name, (0.0, EVERY))
        if time.monotonic() < due:
            return
        with suppress(HeadraceError):  # mostly others hold it, who add a node just now
            failures = remove_left(self._catalog, self._open_capture, source.name)
            self._left[source.name] = (time.monotonic() + pause, min(pause * 2, LONGEST))
            for slot, error in failures.items():
                if slot in source.captures and slot not in self._told:
                    self._told.add(slot)
                    self._events.emit(Notice(told_of(source, slot, error)))

    def seen(self, source: DatabaseSource, now: Json) -> None:
        """Remember a look, and warn of what will be lost soon."""
        found = kind_of(source.kind).outlook(source, now)
        if found.remembered != tuple(source.looks):
            with suppress(HeadraceError):
                self._catalog.note_source_looks(source.name, found.remembered)
        if found.loss is None:
            self._warned.discard(source.name)
        elif source.name not in self._warned:
            self._warned.add(source.name)
            loss = found.loss
            self._events.emit(SlotRunningOut(source.name, loss.what, loss.left, loss.seconds, loss.reason))
