"""Tables of refreshes, verifications, standing, history, maintenance and checks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.schedule import show_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.project.doctor import Check
    from headrace.refresh.maintenance import MaintenanceResult
    from headrace.results.refresh_results import HistoryRow, RefreshResult, StreamTableInfo, VerifyResult
    from headrace.results.repair_results import RepairResult

MODE_STYLES = {"DIFFERENTIAL": "green", "FULL": "yellow", "NO_CHANGE": "dim"}
STATUS_STYLES = {"ACTIVE": "green", "NEW": "yellow", "STOPPED": "bold red", "DAMAGED": "bold red"}
OUTCOME_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def styled(text: str, styles: dict[str, str]) -> str:
    """Return a word in its colour."""
    style = styles.get(text)
    return f"[{style}]{text}[/]" if style else text


def refreshes(results: Sequence[RefreshResult]) -> Iterator[RenderableType]:
    """Render the results of refreshes."""
    if not results:
        yield "Everything is up to date."
        return
    table = fmt.grid(
        "Stream table", "Mode", ("Inserted", "right"), ("Deleted", "right"), ("Time", "right"), "Why in full"
    )
    for result in results:
        table.add_row(
            result.name,
            styled(result.mode.value, MODE_STYLES),
            fmt.count(result.rows_inserted),
            fmt.count(result.rows_deleted),
            fmt.seconds(result.seconds),
            _why(result),
        )
    yield table


def _why(result: RefreshResult) -> str:
    if result.reason is None:
        return ""
    return _escaped(result.detail or result.reason.sentence)


def verifications(results: Sequence[VerifyResult]) -> Iterator[RenderableType]:
    """Return whether stream tables equal their queries."""
    if not results:
        yield "There are no stream tables."
        return
    table = fmt.grid(
        "Stream table", "Equal", ("Rows", "right"), ("Missing", "right"), ("Unexpected", "right"), ("Time", "right")
    )
    for result in results:
        table.add_row(
            result.name,
            "[green]yes[/]" if result.ok else "[bold red]NO[/]",
            fmt.count(result.rows),
            fmt.count(result.missing),
            fmt.count(result.unexpected),
            fmt.seconds(result.seconds),
        )
    yield table
    for result in results:
        if result.skipped_rows:
            yield _skipped(result.name, result.skipped_rows, result.skipped_since)
        yield from (f"[bold red]{_escaped(result.name)}[/]: {_escaped(broken)}." for broken in result.broken_keys)
        yield from _samples(result)


def _skipped(name: str, rows: int, since: dt.datetime | None) -> str:
    what = f"{fmt.count(rows)} changed rows of its sources were skipped since {fmt.moment(since)}"
    return f"[yellow]{name}[/] differs from its query: {what}; headrace refresh {name} --full repairs it."


def _samples(result: VerifyResult) -> Iterator[RenderableType]:
    if result.samples:
        yield f"{result.name}: rows that differ (+ the query returns it, − the table has it)"
    for sample in result.samples:
        weight = int(sample.get("weight", 0))
        values = ", ".join(f"{name}={fmt.cell(value)}" for name, value in sample.items() if name != "weight")
        yield _escaped(f"  {'+' if weight > 0 else '−'}{abs(weight)}  {values}")
    if result.rounded:
        yield f"{result.name}: {fmt.count(result.rounded)} rows differ only in the last digits of floating-point sums."


def standing(infos: Sequence[StreamTableInfo], now: dt.datetime) -> Iterator[RenderableType]:
    """Yield the lines of `status`, and what needs attention below."""
    if not infos:
        yield "There are no stream tables yet; `headrace create --help` shows how to make one."
        return
    table = fmt.grid(
        "Stream table", "Status", "Asked", ("Rows", "right"), "Last", ("Took", "right"), "When", "Schedule", "Behind"
    )
    for info in infos:
        table.add_row(
            info.name,
            styled(info.status.value, STATUS_STYLES),
            info.refresh_mode.value,
            fmt.count(info.rows),
            styled(info.last_mode.value, MODE_STYLES) if info.last_mode else fmt.NOTHING,
            fmt.seconds(info.last_seconds),
            fmt.ago(info.last_refresh, now),
            _escaped(info.schedule or info.effective_schedule or fmt.NOTHING),
            _lag(info) + ", ".join(info.behind),
        )
    yield table
    if any(info.eventual for info in infos):
        yield (
            "The REST catalog changes one table at a time: what is read from several stream tables at one moment "
            "may be of different publications."
        )
    yield from footnotes(infos)


def _lag(info: StreamTableInfo) -> str:
    """Return the lag, red when it is beyond the target; nothing where there is none."""
    if not info.lag:
        return ""
    text = show_duration(info.lag)
    return f"[red]{text}[/] " if info.is_late else f"{text} "


def footnotes(infos: Iterable[StreamTableInfo]) -> Iterator[RenderableType]:
    """Yield sentences about tables that are stopped, failed, or only refreshed in full."""
    for info in infos:
        if info.damage:
            repair = f"headrace repair {info.name}"
            yield f"[bold red]{info.name}[/] is damaged: {_escaped(info.damage)}. Undo that: {repair}"
        if info.skipped_rows:
            yield _skipped(info.name, info.skipped_rows, info.skipped_since)
        if info.late_because:
            share = "" if info.within_target is None else f"; in time for {100 * info.within_target:.1f} % of the day"
            yield f"[yellow]{info.name}[/] is late: {_escaped(info.late_because)}{share}"
        if info.trails:
            behind = ", ".join(f"{source} by {versions}" for source, versions in info.trails.items())
            yield f"[yellow]{info.name}[/] reads older versions until what it reads agrees: {behind}"
        if info.gated:
            yield f"[yellow]{info.name}[/] is held back by closed gates: {', '.join(info.gated)}"
        if info.fuse:
            resolve = f"headrace fuse {info.name} apply, skip or reinitialize"
            yield f"[bold red]{info.name}[/] is stopped by its fuse: {_escaped(info.fuse)} Look, then {resolve}."
        elif info.stopped_reason:
            yield f"[bold red]{info.name}[/] is stopped: {_escaped(info.stopped_reason)}"
        elif info.held_up:
            yield f"[yellow]{info.name}[/] is not refreshed by schedule: {_escaped(info.held_up)}"
        elif info.last_error:
            yield f"[bold red]{info.name}[/] failed last time: {_escaped(info.last_error)}"
        elif not info.incremental:
            why = "; ".join(refusal.message for refusal in info.refusals)
            yield f"[yellow]{info.name}[/] is refreshed in full: {_escaped(why)}"


def history(rows: Sequence[HistoryRow]) -> Iterator[RenderableType]:
    """Yield past refreshes, newest first."""
    if not rows:
        yield "Nothing was refreshed yet."
        return
    table = fmt.grid(
        "When",
        "Stream table",
        "Mode",
        ("Inserted", "right"),
        ("Deleted", "right"),
        ("Time", "right"),
        ("Publ.", "right"),
        ("Epoch", "right"),
        "Outcome",
    )
    for row in rows:
        table.add_row(
            fmt.moment(row.started_at),
            row.name,
            styled(row.mode.value, MODE_STYLES),
            fmt.count(row.rows_inserted),
            fmt.count(row.rows_deleted),
            fmt.seconds(row.seconds),
            fmt.count(row.publication),
            fmt.count(row.epoch),
            _outcome(row),
        )
    yield table


def _outcome(row: HistoryRow) -> str:
    if not row.ok:
        return f"[bold red]{row.error_code}[/] {_escaped(row.error_message or '')}"
    return row.reason.value if row.reason else ""


def maintenance(results: Sequence[MaintenanceResult]) -> Iterator[RenderableType]:
    """Render what maintenance did, or would do."""
    if not results:
        yield "There was nothing to do."
        return
    table = fmt.grid("Table", "Action", "Detail")
    for result in results:
        table.add_row(result.name, result.action, _escaped(result.detail or ""))
    yield table


def repairs(results: Sequence[RepairResult]) -> Iterator[RenderableType]:
    """Render what a repair did."""
    if not results:
        yield "Nothing is damaged: every stored table is as Headrace published it."
        return
    table = fmt.grid("Table", "Action", "What had happened")
    for result in results:
        table.add_row(result.name, result.action, _escaped(result.detail))
    yield table


def checks(found: Sequence[Check]) -> Iterator[RenderableType]:
    """Yield the doctor's findings with their remedies."""
    table = fmt.grid("Check", "", "Finding")
    for check in found:
        table.add_row(check.name, styled(check.outcome.value, OUTCOME_STYLES), _escaped(check.finding))
        if check.remedy:
            table.add_row("", "", f"[bold]→ {_escaped(check.remedy)}[/]")
    yield table


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
