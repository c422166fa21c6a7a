"""Watches over promoted tables: what counts as trouble, and what follows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.catalog import HistoryEntry, Json, Outcome, SchedulingState, Status, StreamTable
from headrace.catalog.state.reader import Reader
from headrace.deploy.promotion_options import PromotionOptions
from headrace.error_codes.outages import SURROUNDINGS
from headrace.names import TableName

PATIENCE = 2
"""Failures in a row that count, where a retry may help; another error counts at once."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch over what was promoted: its end, its checks, and what follows a failure.

    Args:
        until: Until when.
        on_trouble: `rollback` or `tell`.
        checks: By name, queries of rows that must not be.
    """

    until: dt.datetime
    on_trouble: str
    checks: Mapping[str, str]

    def to_json(self) -> Json:
        """Return it as it is stored."""
        return {"until": self.until.isoformat(), "on_trouble": self.on_trouble, "checks": dict(self.checks)}


def watch_of(options: PromotionOptions, promoted_at: dt.datetime) -> Watch | None:
    """Return the watch that a promotion begins; None where none was asked for."""
    if options.watch is None:
        return None
    return Watch(promoted_at + options.watch, options.on_trouble, options.checks)


def watch_from_json(stored: Json) -> Watch:
    """Return a stored watch."""
    return Watch(dt.datetime.fromisoformat(stored["until"]), stored["on_trouble"], stored["checks"])


def trouble(
    names: Iterable[TableName],
    tables: Mapping[TableName, StreamTable],
    scheduling: Mapping[TableName, SchedulingState],
    reader: Reader,
    until: dt.datetime,
) -> str | None:
    """Return what went wrong with promoted tables, in words; None where nothing did.

    Args:
        names: The public stream tables.
        tables: All stream tables.
        scheduling: Their scheduling states.
        reader: The same state of the catalog.
        until: The end of the watch; what went wrong later does not count.
    """
    for name in names:
        known = scheduling.get(name, SchedulingState())
        if known.fuse_at is not None and known.fuse_at <= until:
            return f"the fuse of {name} has blown"
        table = tables.get(name)
        if table is not None and table.status is Status.STOPPED:
            return f"{name} is stopped: {table.stopped_reason}"
        if known.error_code is None:
            continue
        if known.suspended_at is None and (known.error_code in SURROUNDINGS or known.failures < PATIENCE):
            continue
        last = next(iter(reader.history(name, 1)), None)
        if _its_own(last, known, until):
            return f"refreshes of {name} fail ({known.error_code}): {known.error_message}"
    return None


def _its_own(last: HistoryEntry | None, known: SchedulingState, until: dt.datetime) -> bool:
    """Tell whether a table failed itself.

    A failure counts for all that were to be published together. A defect leaves no line in history, so that it counts
    whoever had it.
    """
    if known.error_code == "REFRESH_BROKE":
        return True
    if last is None or last.outcome is not Outcome.FAILED or last.error_code == "ROLLED_BACK":
        return False
    return last.finished_at <= until
