"""Shows tables that are wider than the terminal without breaking names and numbers.

The last column wraps between words where it has prose. Where that is not enough, each row becomes a paragraph: its
first value as a headline, the others beside their headings.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.cli.render.long_tables import drawn, is_long
from headrace.units import NOTHING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

LEAST_PROSE = 24
"""Characters that the wrapped last column must have to be readable."""


def fitted(table: Table, width: int) -> RenderableType:
    """Return a table in a form that fits the terminal.

    Args:
        table: The table, as `format.grid` made it.
        width: Columns of the terminal.
    """
    columns = [_cells(table, at) for at in range(len(table.columns))]
    widths = [max(cell.cell_len for cell in cells) for cells in columns]
    between = 3 * len(widths)  # as `box.SIMPLE_HEAD` draws it
    if sum(widths) + between <= width:
        return drawn(table, columns, widths) if is_long(table, columns) else table
    if not _has_prose(table) or sum(widths[:-1]) + between + LEAST_PROSE > width:
        return _paragraphs(table, width)
    for column, natural in zip(table.columns[:-1], widths[:-1], strict=True):
        column.min_width, column.no_wrap = natural, True
    return table


def _cells(table: Table, at: int) -> list[Text]:
    from rich.text import Text

    column = table.columns[at]
    return [_text(cell) if isinstance(cell, str) else Text(str(cell)) for cell in (column.header, *column.cells)]


@lru_cache(maxsize=4096)
def _text(cell: str) -> Text:
    """Return a cell with its styles, to be left as it is.

    Most have none, and need not be looked through.
    """
    from rich.text import Text

    return Text.from_markup(cell) if "[" in cell or ":" in cell else Text(cell)


def _has_prose(table: Table) -> bool:
    """Return whether the last column has sentences, which may be wrapped."""
    return any(" " in cell.plain.strip() for cell in _cells(table, len(table.columns) - 1)[1:])


def _between_words(pair: Text, width: int) -> Iterator[Text]:
    """Yield lines of a heading and its value, broken between words; the first is indented less."""
    from rich.console import Console
    from rich.text import Text

    for number, part in enumerate(pair.wrap(Console(width=width), width - 4)):
        part.rstrip()
        yield Text.assemble("    " if number else "  ", part)


def _paragraphs(table: Table, width: int) -> Text:
    from rich.text import Text

    columns = [_cells(table, at) for at in range(len(table.columns))]
    headings = [str(column.header) for column in table.columns]
    lines: list[Text] = []
    for row in range(table.row_count):
        values = [cells[-table.row_count + row] for cells in columns]
        head = next((at for at, value in enumerate(values) if value.plain.strip()), 0)
        lines.append(Text.assemble(values[head], style="bold"))
        line = Text("  ")
        for at, value in enumerate(values):
            if at == head or value.plain.strip() in ("", NOTHING):
                continue
            pair = Text.assemble((f"{headings[at]}: " if headings[at] else "", "dim"), value)
            if line.cell_len > 2 and line.cell_len + 3 + pair.cell_len > width:
                lines.append(line)
                line = Text("  ")
            if pair.cell_len + 2 > width:
                lines += _between_words(pair, width)
                continue
            line = Text.assemble(line, "" if line.cell_len == 2 else " · ", pair)
        if line.cell_len > 2:
            lines.append(line)
    return Text("\n").join(lines)
