"""Numbers, durations and moments in words."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.table import Table

NOTHING = "–"


def count(value: int | None) -> str:
    """Return a number of rows: `1,204`."""
    return NOTHING if value is None else f"{value:,}"


def signed(inserted: int, deleted: int) -> str:
    """Return rows that came and went: `+12 −3`."""
    return f"+{inserted:,} −{deleted:,}"


def seconds(value: float | None) -> str:
    """Return a duration: `31 ms`, `1.25 s`, `2 min 05 s`."""
    if value is None:
        return NOTHING
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.995:
        return f"{value:.2f} s"
    return f"{int(value + 0.5) // 60} min {int(value + 0.5) % 60:02d} s"


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


def moment(value: dt.datetime | None) -> str:
    """Return a moment in the reader's time zone."""
    return NOTHING if value is None else f"{value.astimezone():%Y-%m-%d %H:%M:%S}"


def ago(value: dt.datetime | None, now: dt.datetime) -> str:
    """Return how long ago a moment was: `3 min ago`."""
    if value is None:
        return "never"
    passed = max(0.0, (now - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if passed >= length:
            return f"{passed / length:.0f} {unit} ago"
    return f"{passed:.0f} s ago"


def grid(*columns: str | tuple[str, Literal["left", "right"]]) -> Table:
    """Return an empty table in the house style.

    A column is a heading, or a heading with its justification.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        heading, justify = (column, "left") if isinstance(column, str) else column
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def cell(value: Any) -> str:
    """Return a value of a query's result as text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (bytes, bytearray)):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{cell(k)}: {cell(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(cell, value)) + "]"
    return str(value)
