"""Numbers, durations and moments in words."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

from headrace.units import NOTHING, ago, count, seconds, signed, size, span

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["NOTHING", "Verbatim", "ago", "cell", "count", "grid", "moment", "seconds", "signed", "size", "span"]


class Verbatim(str):
    """Text that is printed character by character, as statements are that somebody will run."""


def moment(value: dt.datetime | None) -> str:
    """Return a moment in the reader's time zone."""
    return NOTHING if value is None else f"{value.astimezone():%Y-%m-%d %H:%M:%S}"


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
