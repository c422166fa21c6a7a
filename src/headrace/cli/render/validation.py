"""Renders how the constructs of a query would be maintained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import MODE_STYLES, styled
from headrace.errors import Place

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.refresh_results import RefusalInfo, Validation


def validation(found: Validation) -> Iterator[RenderableType]:
    """Render the mode, then obstacles at their places, or a line for each construct."""
    from rich.markup import escape
    from rich.text import Text

    why = f" ({found.reason.value}: {escape(found.reason.sentence)})" if found.reason else ""
    yield f"[bold]This query[/]: {styled(found.mode.value, MODE_STYLES)}{why}"
    for refusal in found.refusals:
        yield from _refusal(refusal, found.query)
    if found.strategies:
        table = fmt.grid("Construct", "Of", "How a refresh follows a change")
        for line in found.strategies:
            table.add_row(*(Text(text) for text in (line.construct, line.subject, line.how)))
        yield table


def _refusal(refusal: RefusalInfo, query: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text.assemble(("! ", "yellow"), f"{refusal.code.value} {refusal.construct}: {refusal.message}")
    if refusal.line is not None and refusal.column is not None:
        lines = query.split("\n")
        yield Text(Place(refusal.line, refusal.column, lines[refusal.line - 1]).render())
    if refusal.hint:
        yield Text.assemble(("Hint: ", "bold"), refusal.hint)
