"""Rows with a line for each column, for results that are wider than any terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.text import Text

    from headrace.cli.render.answers import Rows


def expanded(found: Rows) -> Iterator[Text]:
    """Yield each row as a paragraph of columns and values."""
    from rich.cells import cell_len
    from rich.text import Text

    width = max(map(cell_len, found.columns), default=0)
    for number, row in enumerate(found.values, start=1):
        lines = [Text(f"row {fmt.count(number)}", style="dim")]
        for name, value in zip(found.columns, row, strict=True):
            heading = name + " " * (width - cell_len(name))
            first, *others = fmt.cell(value).split("\n")
            lines.append(Text.assemble("  ", (heading, "bold"), f"  {first}"))
            lines += [Text(" " * (width + 4) + line) for line in others]
        yield Text("\n").join(lines)
