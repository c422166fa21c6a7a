"""Database sources: lists, landings, checks, and how they stand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.declared_sources import SourceStep
    from headrace.engine.source_results import LandingResult, SourceCheck, SourceHealth, SourceInfo

STYLES = {"ACTIVE": "green", "NEW": "yellow", "PAUSED": "yellow", "STOPPED": "bold red"}


def landings(results: Sequence[LandingResult]) -> Iterator[RenderableType]:
    """What was landed."""
    if not results:
        yield "There was nothing to land."
        return
    table = fmt.grid(
        "Source",
        ("Transactions", "right"),
        ("Rows", "right"),
        ("Inserted", "right"),
        ("Deleted", "right"),
        ("Time", "right"),
        "Mirrors",
    )
    for result in results:
        table.add_row(
            result.source,
            fmt.count(result.transactions),
            fmt.count(result.rows),
            fmt.count(result.inserted),
            fmt.count(result.deleted),
            fmt.seconds(result.seconds),
            ", ".join(result.mirrors),
        )
    yield table


def listed(found: Sequence[SourceInfo]) -> Iterator[RenderableType]:
    """The lines of `source list`, and what needs attention below."""
    if not found:
        yield "There are no database sources yet; `headrace source --help` shows how to add one."
        return
    table = fmt.grid("Source", "Kind", "Status", "Landed", "Position", "Mirrors")
    now = dt.datetime.now(dt.UTC)
    for info in found:
        table.add_row(
            info.name,
            info.kind,
            styled(info.status.value, STYLES),
            fmt.ago(info.landed_at, now),
            info.position or fmt.NOTHING,
            ", ".join(info.mirrors),
        )
    yield table
    for info in found:
        if info.stopped_reason:
            yield _sentence(f"{info.name} is stopped: {info.stopped_reason}")
        if info.gone:
            yield _sentence(f"{info.name}: the tables of {', '.join(info.gone)} were dropped; the last rows are kept.")


def steps(done: Sequence[SourceStep]) -> Iterator[RenderableType]:
    """What makes the sources as they are declared."""
    if not done:
        yield "headrace.toml declares no sources: write a section [sources.NAME]."
        return
    table = fmt.grid("Source", "Action", "Tables")
    for step in done:
        table.add_row(step.source, step.action, _sentence(", ".join(step.tables)))
    yield table


def health(found: SourceHealth) -> Iterator[RenderableType]:
    """How a source stands at its server."""
    if found.waiting_rows is not None:
        yield from _by_triggers(found)
        return
    table = fmt.grid("Source", "Status", ("Behind", "right"), "Slot", "State", ("Kept", "right"), ("Left", "right"))
    table.add_row(
        found.name,
        styled(found.status.value, STYLES),
        _bytes(found.lag_bytes),
        found.slot,
        found.slot_status or "[bold red]missing[/]",
        _bytes(found.kept_bytes),
        "no limit" if found.safe_bytes is None else _bytes(found.safe_bytes),
    )
    yield table
    yield from _stopped(found)


def _by_triggers(found: SourceHealth) -> Iterator[RenderableType]:
    table = fmt.grid("Source", "Status", ("Waiting rows", "right"), "Schema", ("Change tables", "right"))
    missing = "[bold red]missing[/]"
    kept = missing if found.kept_bytes is None else _bytes(found.kept_bytes)
    table.add_row(found.name, styled(found.status.value, STYLES), fmt.count(found.waiting_rows), found.slot, kept)
    yield table
    yield from _stopped(found)


def _stopped(found: SourceHealth) -> Iterator[RenderableType]:
    if found.stopped_reason:
        yield _sentence(f"{found.name} is stopped: {found.stopped_reason}")


def checks(found: Sequence[SourceCheck]) -> Iterator[RenderableType]:
    """Findings, and what to run on the server."""
    table = fmt.grid("Check", "", "Finding")
    for check in found:
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[bold red]fail[/]", _sentence(check.finding))
    yield table
    if remedies := [check.remedy for check in found if check.remedy]:
        yield "Run on the server:"
        yield from map(_sentence, remedies)


def _bytes(number: int | None) -> str:
    if number is None:
        return fmt.NOTHING
    size, unit = float(number), 0
    while size >= 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def _sentence(text: str) -> str:
    from rich.markup import escape

    return escape(text)
