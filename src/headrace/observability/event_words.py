"""Events as sentences, which every reader of them shows alike."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.events import (
    Event,
    FuseBlown,
    FuseResolved,
    GateClosed,
    GateOpened,
    LagExceeded,
    Notice,
    Paused,
    Promoted,
    PromotionRefused,
    RefreshFailed,
    RefreshFinished,
    Resumed,
    RetryPlanned,
    RolledBack,
    SchedulerStarted,
    SchedulerStopped,
    SinkFailed,
    SinkWritten,
    SlotRunningOut,
    Suspended,
    Waiting,
    WatchFailed,
    WatermarkAdvanced,
    logged_event,
)
from headrace.units import seconds, signed, size, span


def logged_words(kind: str, fields: Mapping[str, object]) -> str:
    """Return an event of the log: the sentence that `headrace run` prints, else its fields."""
    told = logged_event(kind, fields)
    line = None if told is None else plain_line(told)
    return line or "  ".join(f"{name} {_shown(value)}" for name, value in fields.items() if value is not None)


def _shown(value: object) -> object:
    if isinstance(value, float):
        return seconds(value)
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def plain_line(event: Event) -> str | None:
    """Return an event as a line of text; None for those that are no news by themselves."""
    match event:
        case RefreshFinished():
            rows = signed(event.rows_inserted, event.rows_deleted)
            return f"{event.table}: {event.mode} {rows} in {seconds(event.seconds)}"
        case RefreshFailed():
            return f"{event.table}: failed {reason_of(event)}"
        case Notice():
            return event.message
        case _:
            return news(event)


def reason_of(event: RefreshFailed) -> str:
    """Return code and message of a failure."""
    return f"[{event.code}] {event.message}"


def news(event: Event) -> str | None:
    """Return a scheduler's event as a line of text; None for refreshes and the like."""
    match event:
        case SchedulerStarted():
            return f"Running the schedules of {event.tables} stream tables."
        case SchedulerStopped():
            return f"Stopped. Refreshed {event.refreshed}, failed {event.failed}."
        case RetryPlanned():
            return f"{event.table}: trying again in {seconds(event.seconds)} (failure {event.failures})"
        case Suspended():
            return f"{event.table}: suspended after {event.failures} failures [{event.code}]; headrace resume goes on"
        case FuseBlown():
            return f"{event.table}: its fuse blew: {event.evidence}"
        case LagExceeded():
            return f"{event.table}: {event.lag:.0f} s behind its sources, more than {event.target} s"
        case SlotRunningOut(left=None, seconds=None):
            return f"{event.source}: {event.reason}"
        case SlotRunningOut():
            left = "" if event.left is None else f"; {size(max(0, event.left))} left"
            soon = "" if event.seconds is None else f", {span(event.seconds)} at the present rate"
            return f"{event.source}: its replication slot will be lost unless it is landed: {event.reason}{left}{soon}"
        case SinkWritten():
            rows = signed(event.inserted, event.deleted)
            return f"Sink {event.sink}: version {event.version}, {rows} in {seconds(event.seconds)}"
        case SinkFailed():
            return f"Sink {event.sink}: not written [{event.code}] {event.message}"
        case Paused():
            return f"Paused {', '.join(event.tables)}."
        case Resumed():
            return f"Resumed {', '.join(event.tables)}."
        case FuseResolved():
            return f"{event.table}: its fuse was resolved: {event.resolution}"
        case Promoted():
            by = ", as its conditions held" if event.automatic else ""
            return f"Promoted {', '.join(event.tables)} of deployment {event.deployment}{by}."
        case PromotionRefused():
            return f"Deployment {event.deployment} was not promoted: {event.reason} [{event.code}]"
        case RolledBack():
            why = f", as {event.reason}" if event.reason else ""
            return f"Took back the promotion of {', '.join(event.tables)}{why}."
        case WatchFailed():
            kept = f"; it was not taken back. {event.refused}" if event.refused else ""
            return f"Since the promotion of {', '.join(event.tables)}: {event.reason}{kept}"
        case GateClosed():
            return f"Held back: {', '.join(event.sources)}."
        case GateOpened():
            return f"Open: {', '.join(event.sources)}."
        case WatermarkAdvanced():
            return f"{event.source}: complete up to {event.moment}"
        case Waiting() if event.table == event.for_table:
            return f"{event.table}: {event.reason}"
        case Waiting():
            return f"{event.table}: waits, as {event.for_table} is {event.reason}"
        case _:
            return None
