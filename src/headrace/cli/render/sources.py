"""Database sources: lists, landings and checks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.source_health import STYLES
from headrace.cli.render.tables import styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.project.declared_sources import SourceStep
    from headrace.results.source_results import LandingResult, SourceCheck, SourceInfo


def landings(results: Sequence[LandingResult]) -> Iterator[RenderableType]:
    """Render the results of landings."""
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
    for result in results:
        for shard, why in result.held.items():
            yield f"Nothing of {shard} was landed: {why}"


def listed(found: Sequence[SourceInfo]) -> Iterator[RenderableType]:
    """Yield the lines of `source list`, and what needs attention below."""
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
        for mirror, name in info.follows.items():
            yield _sentence(f"{info.name}: {mirror} follows {name}, as its table is called now.")
        if info.gone:
            yield _sentence(f"{info.name}: the tables of {', '.join(info.gone)} were dropped; the last rows are kept.")


def steps(done: Sequence[SourceStep]) -> Iterator[RenderableType]:
    """Render the steps that make sources as declared."""
    if not done:
        yield "headrace.toml declares no sources: write a section \\[sources.NAME]."
        return
    table = fmt.grid("Source", "Action", "Tables")
    for step in done:
        table.add_row(step.source, step.action, _sentence(", ".join(step.tables)))
    yield table


def checks(found: Sequence[SourceCheck]) -> Iterator[RenderableType]:
    """Yield findings, and what to run on the server."""
    table = fmt.grid("Check", "", "Finding")
    for check in found:
        table.add_row(check.name, "[green]ok[/]" if check.ok else "[bold red]fail[/]", _sentence(check.finding))
    yield table
    if remedies := [check.remedy for check in found if check.remedy]:
        yield "Run on the server:"
        yield from map(_sentence, remedies)


def _sentence(text: str) -> str:
    from rich.markup import escape

    return escape(text)
