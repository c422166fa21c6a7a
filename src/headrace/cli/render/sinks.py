"""Sinks: lists, writes and comparisons."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.source_health import STYLES
from headrace.cli.render.tables import styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.project.declared_sinks import SinkStep
    from headrace.results.sink_results import SinkInfo, SinkResult, SinkVerifyResult


def written(results: Sequence[SinkResult]) -> Iterator[RenderableType]:
    """Render what was written."""
    if not results:
        yield "There was nothing to write."
        return
    table = fmt.grid(
        "Sink",
        "How",
        ("Version", "right"),
        ("Inserted", "right"),
        ("Deleted", "right"),
        ("Rows", "right"),
        ("Time", "right"),
    )
    for result in results:
        table.add_row(
            result.sink,
            result.how,
            fmt.count(result.version),
            fmt.count(result.inserted),
            fmt.count(result.deleted),
            fmt.count(result.rows),
            fmt.seconds(result.seconds),
        )
    yield table


def listed(found: Sequence[SinkInfo]) -> Iterator[RenderableType]:
    """Yield the lines of `sink list`, and what needs attention below."""
    if not found:
        yield "There are no sinks yet; `headrace sink --help` shows how to add one."
        return
    table = fmt.grid(
        "Sink",
        "Stream table",
        "Target",
        "Placement",
        "Status",
        "Written",
        ("Version", "right"),
        ("Newest", "right"),
        ("Rows", "right"),
    )
    now = dt.datetime.now(dt.UTC)
    for info in found:
        table.add_row(
            info.name,
            info.stream,
            _plain(info.table),
            _plain(info.placement or fmt.NOTHING),
            styled(info.status.value, STYLES),
            fmt.ago(info.written_at, now),
            _number(info.version),
            _number(info.newest),
            _number(info.rows),
        )
    yield table
    for info in found:
        yield from _troubles(info)


def _troubles(info: SinkInfo) -> Iterator[RenderableType]:
    if info.stopped_reason:
        yield _plain(f"{info.name} is stopped: {info.stopped_reason}")
    elif info.last_error:
        yield _plain(f"{info.name} failed {info.failures} times in a row: {info.last_error}")
    if info.waits_for:
        yield _plain(f"{info.name} waits for {info.waits_for}, which is written with it or not at all.")


def status(info: SinkInfo) -> Iterator[RenderableType]:
    """Yield where a sink stands."""
    now = dt.datetime.now(dt.UTC)
    table = fmt.grid("", "")
    table.show_header = False
    behind = "nothing" if info.version == info.newest else f"{fmt.seconds(info.behind_seconds)} behind"
    rows = {
        "Status": styled(info.status.value, STYLES),
        "From": info.stream,
        "Into": _plain(f"{info.table}, {info.url}"),
        "Placement": _plain(info.placement or fmt.NOTHING),
        "Key": ", ".join(info.key) or "none: a bag",
        "Schedule": info.schedule or "what is published, at once",
        "Version": f"{_number(info.version)} of {_number(info.newest)}: {behind}",
        "Rows": _number(info.rows),
        "Written": fmt.ago(info.written_at, now),
    }
    if info.last_error:
        rows["Last error"] = _plain(info.last_error)
        rows["Remedy"] = _plain(info.remedy or "")
    if info.retry_at is not None:
        rows["Tried again"] = f"in {fmt.seconds(max(0.0, (info.retry_at - now).total_seconds()))}"
    for label, text in rows.items():
        table.add_row(label, text)
    yield table
    yield from _troubles(info)


def verified(found: SinkVerifyResult) -> Iterator[RenderableType]:
    """Yield the result of a comparison."""
    if found.ok:
        yield (
            f"{found.sink}: {fmt.count(found.rows)} rows are those of version {found.version}"
            f" (checksum {found.checksum})."
        )
        return
    yield (
        f"{found.sink} differs from version {found.version}: {fmt.count(found.missing)} rows are missing,"
        f" {fmt.count(found.unexpected)} unexpected."
    )
    for example in found.examples:
        yield _plain(f"  {example}")
    yield _plain(f"headrace sink resync {found.sink} makes it equal.")


def steps(done: Sequence[SinkStep]) -> Iterator[RenderableType]:
    """Render the steps that make sinks as declared."""
    if not done:
        yield "headrace.toml declares no sinks: write a section \\[sinks.NAME]."
        return
    table = fmt.grid("Sink", "Action")
    for step in done:
        table.add_row(step.sink, step.action)
    yield table


def _number(value: int | None) -> str:
    return fmt.NOTHING if value is None else fmt.count(value)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
