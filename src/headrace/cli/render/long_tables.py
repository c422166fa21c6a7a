"""Draws tables of thousands of rows: Rich takes more than a millisecond for each.

They look as Rich draws the house style (`format.grid`) where every value fits on a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

LONG = 500
"""Rows from which it matters who draws."""


def is_long(table: Table, columns: Sequence[Sequence[Text]]) -> bool:
    """Return whether a table is drawn here: it has many rows, each of one line."""
    return table.row_count >= LONG and not any("\n" in cell.plain for column in columns for cell in column)


def drawn(table: Table, columns: Sequence[Sequence[Text]], widths: Sequence[int]) -> Text:
    """Return a table that fits the terminal.

    Args:
        table: The table, as `format.grid` made it.
        columns: The heading and the values of each column.
        widths: Characters of the widest of them, by column.
    """
    from rich.text import Text

    inner = sum(widths) + 3 * (len(widths) - 1)
    blank = Text(" " * (inner + 2))
    right = [column.justify == "right" for column in table.columns]
    heading, *rows = (Text.assemble(*_line(row, widths, right)) for row in zip(*columns, strict=True))
    heading.stylize(table.header_style, 1, len(heading) - 1)
    return Text("\n").join([blank, heading, Text(f" {'─' * inner} "), *rows, blank])


def _line(row: Sequence[Text], widths: Sequence[int], right: Sequence[bool]) -> Iterator[Text | str]:
    gap = " "
    for cell, width, flush in zip(row, widths, right, strict=True):
        space = " " * (width - cell.cell_len)
        yield from (gap, space, cell) if flush else (gap, cell, space)
        gap = "   "
    yield " "
