"""What keeps changes back: blown fuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.safeguards.fuses import BlownFuse


def fuses(found: Sequence[BlownFuse]) -> Iterator[RenderableType]:
    """Blown fuses, with the evidence."""
    if not found:
        yield "No fuse has blown."
        return
    table = fmt.grid("Stream table", "Since", ("Changed", "right"), ("Allowed", "right"), "By", ("Usually", "right"))
    for fuse in found:
        table.add_row(
            fuse.name,
            fmt.moment(fuse.at),
            fmt.count(fuse.rows),
            fmt.count(fuse.limit),
            fuse.rule,
            fmt.count(fuse.usual),
        )
    yield table
    for fuse in found:
        yield f"{fuse.name}: {fuse.evidence}"
