"""Numbers, durations and moments in words."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

from headrace.units import NOTHING, count, seconds, size, span

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["NOTHING", "Verbatim", "ago", "cell", "count", "grid", "moment", "seconds", "signed", "size", "span"]


class Verbatim(str):
    """Text that is printed character by character, as statements are that somebody will run."""


def signed(inserted: int, deleted: int) -> str:
    """Return rows that came and went: `+12 −3`."""
    return f"+{inserted:,} −{deleted:,}"


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
