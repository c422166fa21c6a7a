"""Schedules: when a stream table is refreshed, as text and as a value.

In come texts of users; out go values that say when a table is due. Pure. Doors: `parse_schedule`, `stored_schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.errors import UserError
from headrace.schedule.cron import Cron, NotCron, looks_like_cron, parse_cron
from headrace.schedule.durations import parse_duration, show_duration

__all__ = [
    "DOWNSTREAM",
    "LONGEST",
    "MANUAL",
    "Cron",
    "Kind",
    "Schedule",
    "parse_schedule",
    "show_duration",
    "stored_schedule",
]

LONGEST = 366 * 86400
"""A duration above that, in seconds, is taken for a mistake."""

PAUSE = 1
"""Seconds between the refreshes of an `ON CHANGE` table that names no pause."""


class Kind(StrEnum):
    """Kinds of schedules."""

    LAG = "LAG"
    CRON = "CRON"
    ON_CHANGE = "ON CHANGE"
    DOWNSTREAM = "DOWNSTREAM"
    MANUAL = "MANUAL"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a stream table.

    Args:
        text: As written, without spaces around it.
        seconds: LAG: the age, against its sources, that the table should not exceed. ON CHANGE: the least time between
            two refreshes. Else 0.
        kind: How it decides.
        cron: CRON: the points in time.
        trouble: Why it cannot be read here, where it was stored elsewhere; what has it is held; else "".
    """

    text: str
    seconds: int = 0
    kind: Kind = Kind.LAG
    cron: Cron | None = None
    trouble: str = ""


DOWNSTREAM = Schedule("DOWNSTREAM", kind=Kind.DOWNSTREAM)
MANUAL = Schedule("MANUAL", kind=Kind.MANUAL)


def parse_schedule(text: str) -> Schedule:
    """Read a schedule.

    A duration (`30 seconds`, `1h30m`), a cron expression with or without a time zone (`0 6 * * * Europe/Berlin`,
    `@hourly`), `DOWNSTREAM`, `MANUAL`, or `ON CHANGE`, alone or with the least time between refreshes (`ON CHANGE EVERY
    10 seconds`).

    Raises:
        UserError: `INVALID_SCHEDULE`, with the reason.
    """
    wanted = text.strip()
    words = wanted.upper().split()
    if words in (["DOWNSTREAM"], ["MANUAL"]):
        return DOWNSTREAM if words == ["DOWNSTREAM"] else MANUAL
    if words[:2] == ["ON", "CHANGE"]:
        return Schedule(wanted, _pause(text, words[2:]), Kind.ON_CHANGE)
    if looks_like_cron(wanted):
        try:
            return Schedule(wanted, kind=Kind.CRON, cron=parse_cron(wanted))
        except NotCron as error:
            raise _invalid(text, str(error)) from error
    return Schedule(wanted, _seconds(text, wanted))


def stored_schedule(text: str) -> Schedule:
    """Read a schedule that was good where it was stored: hosts know different time zones.

    Due at any time, where it cannot be read, and held for its `trouble`.
    """
    try:
        return parse_schedule(text)
    except UserError as error:
        return Schedule(text, PAUSE, Kind.ON_CHANGE, trouble=error.message)


def _pause(text: str, rest: list[str]) -> int:
    if not rest:
        return PAUSE
    if rest[0] != "EVERY":
        raise _invalid(text, "goes on after ON CHANGE with something other than EVERY and a duration")
    return _seconds(text, " ".join(rest[1:]))


def _seconds(text: str, duration: str) -> int:
    seconds = parse_duration(duration)
    if seconds is None:
        raise _invalid(text, "is no schedule")
    if not 0 < seconds <= LONGEST:
        raise _invalid(text, "is not between a second and a year")
    return seconds


def _invalid(text: str, what: str) -> UserError:
    return UserError(
        "INVALID_SCHEDULE",
        f"The schedule '{text}' {what}.",
        hint="Write an age such as '30 seconds' or '1h30m', cron such as '0 6 * * * Europe/Berlin' or '@hourly', "
        "'ON CHANGE', 'DOWNSTREAM' or 'MANUAL'.",
    )
