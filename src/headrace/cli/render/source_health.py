"""How a database source stands at its server: `headrace source status`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import styled

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

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
    table.add_row("Behind", _behind(found))
    if found.waiting_rows is not None:
        table.add_row("Triggers", f"schema {escape(found.slot)}")
        kept = MISSING if found.kept_bytes is None else fmt.size(found.kept_bytes)
        table.add_row("Change tables", f"{kept}, {fmt.count(found.waiting_rows)} rows wait")
    else:
        _slot(table, found)
    table.add_row("On the way", f"{fmt.size(found.spool_bytes)} in the warehouse")
    yield table
    if found.stopped_reason:
        yield escape(f"{found.name} is stopped: {found.stopped_reason}")
    yield from _last_error(found, now)


def _behind(found: SourceHealth) -> str:
    """`12.5 s, 3 transactions, 4.0 MiB of write-ahead log`."""
    parts = []
    if found.lag_seconds is not None:
        parts.append(("at most " if found.lag_seconds_at_most else "") + fmt.seconds(found.lag_seconds))
    if found.lag_transactions is not None:
        least = "at least " if found.lag_transactions_at_least else ""
        parts.append(f"{least}{fmt.count(found.lag_transactions)} transactions")
    if found.lag_bytes is not None:
        parts.append(f"{fmt.size(found.lag_bytes)} of write-ahead log")
    return ", ".join(parts) or fmt.NOTHING


def _slot(table: Table, found: SourceHealth) -> None:
    from rich.markup import escape

    table.add_row("Slot", escape(found.slot))
    why = f" ({escape(found.slot_invalidation)})" if found.slot_invalidation else ""
    table.add_row("State", MISSING if found.slot_status is None else escape(found.slot_status) + why)
    if found.slot_status is None:
        return
    table.add_row("Read by", escape(found.slot_active_by or "nobody now"))
    left = "no limit" if found.safe_bytes is None else f"{fmt.size(max(0, found.safe_bytes))} left"
    table.add_row("Kept log", f"{fmt.size(found.kept_bytes or 0)}, {left}")
    if found.runs_out_seconds is not None:
        table.add_row("Lost in", f"{fmt.span(found.runs_out_seconds)}, if nothing more is landed")
    elif found.safe_bytes is not None and found.log_bytes_per_second is None:
        table.add_row("Lost in", "not known yet: look again in a moment")
    if found.idle_timeout_seconds is not None:
        idle = fmt.NOTHING if found.idle_seconds is None else fmt.span(found.idle_seconds)
        table.add_row("Idle", f"{idle} of {fmt.span(found.idle_timeout_seconds)}")
    table.add_row("Spilled", f"{fmt.size(found.spilled_bytes or 0)} on the server, by large transactions")


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
