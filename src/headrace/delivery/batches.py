"""Sinks that are written in one transaction, and when they are due. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headrace.catalog import Sink, SinkStatus
from headrace.names import TableName
from headrace.schedule import Kind, Schedule, stored_schedule
from headrace.schedule.due import Standing, due_at

AT_ONCE = Schedule("ON CHANGE", kind=Kind.ON_CHANGE)
"""The schedule of a sink that has none: as soon as something is published."""

FIRST, LONGEST = 1.0, 60.0
"""Seconds until a failed sink is tried again: doubling from the first to the longest, and up to a quarter more."""

LATEST_RETRY = dt.timedelta(seconds=1.25 * LONGEST)

HELD = {SinkStatus.PAUSED: "paused", SinkStatus.STOPPED: "stopped"}


@dataclass(frozen=True, slots=True)
class Batch:
    """Sinks that are written in one transaction: of one group, into one database.

    Args:
        kind: Their kind.
        database: What they have in common.
        sinks: The sinks, by name.
    """

    kind: str
    database: str
    sinks: tuple[Sink, ...]

    @property
    def name(self) -> str:
        """Return the names of its sinks."""
        return ", ".join(sink.name for sink in self.sinks)

    @property
    def held(self) -> Sink | None:
        """Return a sink for which all of them wait; None if there is none."""
        return next((sink for sink in self.sinks if sink.status in HELD), None)


def batches(
    sinks: Iterable[Sink],
    unit_of: Callable[[TableName], TableName],
    database_of: Callable[[Sink], str],
) -> tuple[Batch, ...]:
    """Cut sinks into batches.

    Args:
        sinks: The sinks, by name.
        unit_of: Says which group a stream table is in.
        database_of: Says which database a sink is in.
    """
    found: dict[tuple[str, str, TableName], list[Sink]] = {}
    for sink in sinks:
        found.setdefault((sink.kind, database_of(sink), unit_of(sink.stream)), []).append(sink)
    return tuple(Batch(kind, database, tuple(of)) for (kind, database, _), of in found.items())


def batch_due(
    batch: Batch,
    newest: Mapping[TableName, int],
    behind_since: Callable[[Sink], dt.datetime | None],
    now: dt.datetime,
) -> dt.datetime | None:
    """Return when a batch is due; None when nothing is to be written, or a sink is held.

    What has a schedule that cannot be read here is held, too, with what is written together with it.

    Args:
        batch: The batch.
        newest: Newest versions of stream tables.
        behind_since: Says when the oldest version was published that a sink has not.
        now: The time.
    """
    if batch.held is not None:
        return None
    due: list[dt.datetime] = []
    for sink in batch.sinks:
        if sink.stream not in newest or newest[sink.stream] == sink.version:
            continue
        schedule = AT_ONCE if sink.schedule is None else stored_schedule(sink.schedule)
        if schedule.trouble:
            return None
        standing = Standing(sink.version is not None, behind_since(sink), sink.written_at)
        if (moment := due_at(schedule, standing, now)) is not None:
            due.append(moment)
    latest = now + LATEST_RETRY  # one that seems to be later was planned by a clock that was ahead
    retries = [at for sink in batch.sinks if (at := sink.retry_at) is not None and at <= latest]
    return max([min(due), *retries]) if due else None
