"""Cron expressions with a time zone: `0 6 * * MON-FRI Europe/Berlin`, `@hourly`.

CronSim evaluates them. It follows Debian's cron, also where clocks are changed: a time that a day skips is made up for
right after the gap, and one that a day has twice counts once.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_UNIVERSAL = ("UTC", "GMT")

_FIELD = re.compile(
    r"([\d*?/,#LW-]|MON|TUE|WED|THU|FRI|SAT|SUN|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)+", re.IGNORECASE
)
"""Matches a field of a cron expression."""


class NotCron(ValueError):
    """The text is no cron expression; the message completes "The schedule '…' "."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Points in time that repeat.

    Args:
        expression: Five fields, or six with seconds first.
        zone: Time zone by its IANA name; the fields mean local time there.
    """

    expression: str
    zone: str = "UTC"

    def next_after(self, moment: dt.datetime) -> dt.datetime:
        """Return the first point later than an aware moment, in UTC."""
        local = moment.astimezone(ZoneInfo(self.zone))
        points = (point.astimezone(dt.UTC) for point in CronSim(self.expression, local))
        return next(point for point in points if point > moment)  # within an hour that a day has twice, some are past


def looks_like_cron(text: str) -> bool:
    """Return whether a text is meant as cron: a nickname, or a first word of cron's signs."""
    words = text.split()
    return text.startswith("@") or (len(words) >= 5 and all(c in "0123456789*/,-" for c in words[0]))


def parse_cron(text: str) -> Cron:
    """Read a nickname or five or six fields, and perhaps a time zone after them.

    Raises:
        NotCron: With the reason.
    """
    *fields, zone = words if _ends_in_zone(words := text.split()) else [*words, "UTC"]
    if fields and fields[0].startswith("@"):
        known = NICKNAMES.get(fields[0].lower()) if len(fields) == 1 else None
        if known is None:
            raise NotCron(f"is no cron expression: nicknames are {', '.join(NICKNAMES)}")
        fields = known.split()
    if len(fields) not in (5, 6):
        raise NotCron(f"has {len(fields)} fields, where cron has five, or six with seconds first")
    cron = Cron(" ".join(fields).upper(), _zone(zone))
    try:
        cron.next_after(dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    except CronSimError as error:
        raise NotCron(f"is no cron expression: {str(error).lower()}") from error
    except StopIteration:  # CronSim has looked fifty years ahead
        raise NotCron("never comes: no day is like that") from None
    return cron


def _ends_in_zone(words: list[str]) -> bool:
    """Time zones have a slash between letters, are UTC, or stand after all fields and are none."""
    last = words[-1] if len(words) > 1 else ""
    if last.upper() in _UNIVERSAL or ("/" in last and last[0].isalpha() and last[-1].isalpha()):
        return True
    complete = len(words) > 5 or words[0].startswith("@")
    return complete and last[:1].isalpha() and not _FIELD.fullmatch(last)


def _zone(name: str) -> str:
    name = name.upper() if name.upper() in _UNIVERSAL else name
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise NotCron(f"names a time zone that is not known here, {name}") from None
    return name
