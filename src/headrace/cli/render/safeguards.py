"""Renders what keeps changes back: blown fuses, closed gates, watermarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.schedule import show_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.api.safeguards.fuses import BlownFuse
    from headrace.api.safeguards.gates import GateInfo
    from headrace.api.safeguards.watermarks import WatermarkInfo


def fuses(found: Sequence[BlownFuse]) -> Iterator[RenderableType]:
    """Yield blown fuses, with the evidence."""
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


def gates(found: Sequence[GateInfo]) -> Iterator[RenderableType]:
    """Yield closed gates, and what they hold back."""
    if not found:
        yield "No gate is closed."
        return
    table = fmt.grid("Source", "Since", ("Version", "right"), "Holds back")
    for gate in found:
        table.add_row(gate.source, fmt.moment(gate.closed_at), str(gate.version), ", ".join(gate.holds) or fmt.NOTHING)
    yield table


def watermarks(found: Sequence[WatermarkInfo]) -> Iterator[RenderableType]:
    """Yield groups of sources, where they are, and what waits for them."""
    if not found:
        yield "There are no watermark groups."
        return
    table = fmt.grid("Group", "Source", "Complete until", "Agrees", ("Tolerance", "right"), "Refreshed while it does")
    for group in found:
        agrees = "[green]yes[/]" if group.agrees else "[yellow]no[/]"
        told = (group.name, agrees, show_duration(group.tolerance), ", ".join(group.dependants) or fmt.NOTHING)
        for source, mark in group.marks.items():
            until = fmt.NOTHING if mark is None else f"{mark:%Y-%m-%d %H:%M:%S} UTC"
            table.add_row(told[0], source, until, *told[1:])
            told = ("", "", "", "")
    yield table
