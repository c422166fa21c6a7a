"""Renders a database source's health at its server: `headrace source status`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.source_results import SourceHealth

STYLES = {"ACTIVE": "green", "NEW": "yellow", "PAUSED": "yellow", "STOPPED": "bold red"}
MISSING = "[bold red]missing[/]"


def health(found: SourceHealth, now: dt.datetime | None = None) -> Iterator[RenderableType]:
    """Render a source's health, one line for each of an operator's questions."""
    from rich.markup import escape

    now = now or dt.datetime.now(dt.UTC)
    table = fmt.grid("Source", escape(found.name))
    table.add_row("Status", styled(found.status.value, STYLES))
    table.add_row("Landed", fmt.ago(found.landed_at, now))
    for line in found.lines:
        table.add_row(escape(line.label), (MISSING if line.missing else "") + escape(line.text))
    yield table
    if found.stopped_reason:
        yield escape(f"{found.name} is stopped: {found.stopped_reason}")
    yield from _last_error(found, now)


def _last_error(found: SourceHealth, now: dt.datetime) -> Iterator[RenderableType]:
    from rich.markup import escape

    error = found.last_error
    if error is None:
        return
    over = f", over since {fmt.ago(error.over, now)}" if error.over else ""
    began = f", again and again since {fmt.ago(error.since, now)}" if error.since != error.at else ""
    yield escape(f"Last error {fmt.ago(error.at, now)}{began}{over}: [{error.code}] {error.message}")
    if error.detail and not error.over:
        yield escape(error.detail)
    if error.remedy and not error.over:
        yield escape(f"What to do: {error.remedy}")
