"""Windows of time in which a deployment may promote itself: daily, or between two moments."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from headrace.errors import UserError

_DAILY = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class PromotionWindow:
    """The time in which a promotion may be made.

    Args:
        daily: From and until which time of each day, in UTC; past midnight where the first is the later one.
        begins: Not before this moment.
        ends: Not after this moment.
    """

    daily: tuple[dt.time, dt.time] | None = None
    begins: dt.datetime | None = None
    ends: dt.datetime | None = None

    def is_open(self, now: dt.datetime) -> bool:
        """Return whether a promotion may be made now."""
        if self.daily is not None:
            first, last = self.daily
            time = now.astimezone(dt.UTC).time()
            return first <= time < last if first < last else (time >= first or time < last)
        return (self.begins is None or now >= self.begins) and not self.is_over(now)

    def is_over(self, now: dt.datetime) -> bool:
        """Return whether it will never be open again."""
        return self.ends is not None and now >= self.ends


ALWAYS = PromotionWindow()


def parse_window(text: str) -> PromotionWindow:
    """Read a window: `02:00-04:00` of each day, or `FROM/UNTIL`, one of which may be missing.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    found = _DAILY.fullmatch(text.strip())
    try:
        if found:
            first, last = (dt.time(int(h), int(m)) for h, m in (found.groups()[:2], found.groups()[2:]))
            if first != last:
                return PromotionWindow(daily=(first, last))
        elif "/" in text:
            begins, ends = (_moment(part.strip()) for part in text.split("/"))
            if (begins or ends) and (begins is None or ends is None or begins < ends):
                return PromotionWindow(begins=begins, ends=ends)
    except ValueError:
        pass
    raise UserError(
        "INVALID_OPTION",
        f"window cannot be '{text}'.",
        hint="Write times of each day in UTC, '02:00-04:00', or moments, '2026-03-01T02:00Z/2026-03-01T04:00Z', of "
        "which one may be left out.",
    )


def _moment(text: str) -> dt.datetime | None:
    if not text:
        return None
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
