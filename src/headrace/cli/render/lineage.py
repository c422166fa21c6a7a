"""Column lineage, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.lineage_results import ColumnOrigin, TableLineage


def lineage(found: TableLineage) -> Iterator[RenderableType]:
    """Yield a table with a line for each column and way, and what decides about rows."""
    from rich.markup import escape

    if found.unknown:
        yield escape(f"Where the columns of {found.table} come from is not known. {found.unknown}")
        yield escape(f"It reads {', '.join(found.reads)}.")
        return
    table = fmt.grid("Column", "How", "Comes from")
    for column in found.columns:
        lines = _by_influence(column.origins)
        for i, (how, origins) in enumerate(lines or [(fmt.NOTHING, "constants, or rows that are counted")]):
            table.add_row("" if i else escape(column.name), how, escape(origins))
    for i, (how, origins) in enumerate(_by_influence(found.rows)):
        table.add_row("" if i else "[italic]which rows[/]", how, escape(origins))
    yield table


def _by_influence(origins: Sequence[ColumnOrigin]) -> list[tuple[str, str]]:
    """Return origins in one text for each way in which they take part."""
    ways = dict.fromkeys(origin.influence for origin in origins)
    names = {way: (f"{o.table}.{o.column}" for o in origins if o.influence is way) for way in ways}
    return [(way.value, ", ".join(names[way])) for way in ways]
