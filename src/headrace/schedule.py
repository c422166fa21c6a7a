"""Schedules: how old a stream table may become, as text and as seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.errors import UserError

_UNITS = {
    "second": 1,
    "sec": 1,
    "s": 1,
    "minute": 60,
    "min": 60,
    "m": 60,
    "hour": 3600,
    "hr": 3600,
    "h": 3600,
    "day": 86400,
    "d": 86400,
    "week": 604800,
    "w": 604800,
}
_AMOUNT = re.compile(r"(\d+)\s*([a-z]+)\s*", re.IGNORECASE)

LONGEST = 366 * 86400
"""A duration above that, in seconds, is taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a stream table is due.

    Args:
        text: As written, without spaces around it.
        seconds: The age, against its sources, that the table should not exceed.
    """

    text: str
    seconds: int


def parse_schedule(text: str) -> Schedule:
    """Read a schedule: one or several amounts of time, such as `30 seconds`, `1 minute`, `1h30m`.

    Raises:
        UserError: `INVALID_SCHEDULE` when it is no such text, of no length, or longer than a year.
    """
    wanted = text.strip()
    seconds, at = 0, 0
    while at < len(wanted):
        amount = _AMOUNT.match(wanted, at)
        unit = amount and _unit(amount.group(2))
        if not amount or not unit:
            raise _invalid(text, "is no duration")
        seconds += int(amount.group(1)) * unit
        at = amount.end()
    if not 0 < seconds <= LONGEST:
        raise _invalid(text, "is no duration" if not wanted else "is not between a second and a year")
    return Schedule(wanted, seconds)


def _unit(word: str) -> int | None:
    word = word.lower()
    return _UNITS.get(word) or (_UNITS.get(word.removesuffix("s")) if len(word) > 2 else None)


def _invalid(text: str, what: str) -> UserError:
    return UserError(
        "INVALID_SCHEDULE",
        f"The schedule '{text}' {what}.",
        hint="Write an age, such as '30 seconds', '1 minute', '1h30m' or '2 days'.",
    )
