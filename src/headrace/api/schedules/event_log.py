"""Events that schedulers have logged in the catalog."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.catalog import Catalog
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class LoggedEvent(Record):
    """An event that a scheduler wrote to the catalog.

    Args:
        id: Grows.
        at: When.
        event: What happened, such as `refresh_finished`.
        fields: What it is about.
    """

    id: int
    at: dt.datetime
    event: str
    fields: Mapping[str, Any]


def event_log(catalog: Catalog, after: int | None, limit: int) -> tuple[LoggedEvent, ...]:
    """Return the events that schedulers wrote; see `Headrace.event_log`."""
    return tuple(LoggedEvent(e.id, e.at, e.kind, e.fields) for e in catalog.events(after, limit))
