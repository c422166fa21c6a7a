"""Writes numbers, durations and sizes in words."""

from __future__ import annotations

import datetime as dt

NOTHING = "–"


def count(value: int | None) -> str:
    """Return a number of rows: `1,204`."""
    return NOTHING if value is None else f"{value:,}"


def seconds(value: float | None) -> str:
    """Return a duration: `31 ms`, `1.25 s`, `2 min 05 s`."""
    if value is None:
        return NOTHING
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.995:
        return f"{value:.2f} s"
    return f"{int(value + 0.5) // 60} min {int(value + 0.5) % 60:02d} s"


def signed(inserted: int, deleted: int) -> str:
    """Return rows that came and went: `+12 −3`."""
    return f"+{inserted:,} −{deleted:,}"


def ago(value: dt.datetime | None, now: dt.datetime) -> str:
    """Return how long ago a moment was: `3 min ago`."""
    if value is None:
        return "never"
    passed = max(0.0, (now - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if passed >= length:
            return f"{passed / length:.0f} {unit} ago"
    return f"{passed:.0f} s ago"


def span(value: float) -> str:
    """Return a long time: `45 s`, `12 min`, `5.5 h`, `3.0 d`."""
    for unit, length in (("d", 86_400), ("h", 3_600)):
        if value >= 2 * length:
            return f"{value / length:.1f} {unit}"
    return f"{value / 60:.0f} min" if value >= 120 else f"{value:.0f} s"


def size(value: int) -> str:
    """Return a number of bytes: `12.3 GiB`."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
