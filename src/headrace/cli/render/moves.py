"""Renders what moving a project to another lake did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.move_results import CatalogMove


def moved(result: CatalogMove, *, dry_run: bool) -> Iterator[RenderableType]:
    """Render the tables that moved, and what is left to do.

    Args:
        result: What was done.
        dry_run: Whether it would only be done.
    """
    from rich.markup import escape

    if result.source == result.target:
        yield f"Nothing to move: the tables of this project are in {escape(result.target)}."
    elif result.tables:
        table = fmt.grid("Table", "What it is", "Would be" if dry_run else "Action")
        for row in result.tables:
            table.add_row(escape(row.name), row.kind, row.action)
        yield table
    if result.source != result.target:
        count = f"{len(result.tables)} table{'s' if len(result.tables) != 1 else ''}"
        verb = "would be moved" if dry_run else f"moved in {fmt.seconds(result.seconds)}"
        yield f"{count} {verb}, from {escape(result.source)} to {escape(result.target)}."
    if result.left:
        yield f"Left there, because they are not this project's: {escape(', '.join(result.left))}."
    if dry_run and result.notes:
        yield "Afterwards:"
    yield from _notes(result)


def confirmed(result: CatalogMove, *, dry_run: bool) -> Iterator[RenderableType]:
    """Render which database is the project's own now.

    Args:
        result: What was done.
        dry_run: Whether it would only be done.
    """
    if result.source == result.target:
        yield f"Nothing to confirm: the project is in {result.target}."
    else:
        verb = "would be" if dry_run else "is"
        yield f"The project {verb} in {result.target} from now on, and was in {result.source}."
    yield from _notes(result)


def _notes(result: CatalogMove) -> Iterator[RenderableType]:
    from rich.markup import escape

    for note in result.notes:
        yield f"[bold]→ {escape(note)}[/]"
