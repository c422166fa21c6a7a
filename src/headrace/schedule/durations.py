"""Durations, as text and as seconds: `30 seconds`, `1 minute`, `1h30m`."""

from __future__ import annotations

import re

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
HUNDRED_YEARS = 100 * 365 * 86_400
"""Seconds, the longest duration: what is added to the time of day must stay a date."""
_AMOUNT = re.compile(r"(\d{1,18})\s*([a-z]+)\s*", re.IGNORECASE)
"""Longer numbers are no durations: Python itself refuses to read numbers of thousands of digits."""


def parse_duration(text: str) -> int | None:
    """Return seconds of amounts of time; None for what is none, or beyond `HUNDRED_YEARS`."""
    wanted = text.strip()
    seconds, at = 0, 0
    while at < len(wanted):
        amount = _AMOUNT.match(wanted, at)
        unit = amount and _unit(amount.group(2))
        if not amount or not unit:
            return None
        seconds += int(amount.group(1)) * unit
        at = amount.end()
    return seconds if wanted and seconds <= HUNDRED_YEARS else None


def _unit(word: str) -> int | None:
    word = word.lower()
    return _UNITS.get(word) or (_UNITS.get(word.removesuffix("s")) if len(word) > 2 else None)


def show_duration(seconds: float) -> str:
    """Return a duration as people write it: `45 s`, `1 min 30 s`, `2 h`."""
    whole = round(seconds)
    if whole < 1:
        return f"{seconds:.1f} s"
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, whole = divmod(whole, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2])
