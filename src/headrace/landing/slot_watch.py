"""Watches the slots of database sources: remembers looks at them, and warns before the server gives one up."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.events import SlotRunningOut

if TYPE_CHECKING:
    from headrace.catalog import Catalog, DatabaseSource
    from headrace.events import Events
    from headrace.sources.postgres.health.slot_outlook import Look, Outlook

EVERY = 30.0
"""Seconds between two looks at a source, at least."""

OUT_OF_REACH = frozenset({"SOURCE_UNREACHABLE", "SOURCE_LOGIN_REFUSED", "SOURCE_LOST", "SOURCE_URL_INVALID"})
"""Failures of a landing after which no look would succeed."""


class SlotWatch:
    """Looks at the slots of a project's sources.

    Args:
        catalog: Remembers looks.
        events: Told of slots that run out; once, until one is well again.
    """

    def __init__(self, catalog: Catalog, events: Events) -> None:
        self._catalog = catalog
        self._events = events
        self._looked: dict[str, float] = {}
        self._warned: set[str] = set()

    def landed(self, name: str, failure: HeadraceError | None) -> None:
        """Look at a source that was just landed, or could not be, unless that was done a moment ago.

        A slot that is landed counts as read: where nothing was committed for long, the server would take it for idle.
        """
        if time.monotonic() - self._looked.get(name, -EVERY) < EVERY:
            return
        if failure is not None and failure.code in OUT_OF_REACH:
            return
        self._looked[name] = time.monotonic()
        with suppress(HeadraceError):  # it was landed, or its failure is told: a look is worth no other one
            from headrace.catalog import SourceStatus
            from headrace.sources.postgres.health.server_health import look

            with self._catalog.reading() as reader:
                source = reader.find_source(name)
            if source is None:
                return
            landing = failure is None and source.status is SourceStatus.ACTIVE
            now = look(source.options, keep_from_idling=landing)
            if now is not None:
                self.seen(source, now)

    def seen(self, source: DatabaseSource, now: Look) -> Outlook:
        """Remember a look, and warn where the slot is about to be lost."""
        from headrace.sources.postgres.health.slot_outlook import as_json, from_json, outlook, remembered

        looks = from_json(source.looks)
        kept = remembered(looks, now)
        if kept != looks:
            with suppress(HeadraceError):
                self._catalog.note_source_looks(source.name, as_json(kept))
        found = outlook(looks, now)
        if found.why is None:
            self._warned.discard(source.name)
        elif source.name not in self._warned:
            self._warned.add(source.name)
            slot = source.options["slot"]
            self._events.emit(SlotRunningOut(source.name, slot, now.left, found.seconds, found.why))
        return found
