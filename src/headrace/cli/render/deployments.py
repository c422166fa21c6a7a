"""Deployments, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.deploy.deployment_results import GreenInfo, PromotionResult


def greens(found: Sequence[GreenInfo]) -> Iterator[RenderableType]:
    """Yield a line for each second generation, and what is to be known of it."""
    from rich.markup import escape

    if not found:
        yield "There is no deployment."
        return
    table = fmt.grid("Deployment", "Stream table", "", "State", "Behind", "Rows", "Public rows", "Queried as")
    for info in found:
        late = ", ".join(_late(info, root) for root in info.lag_versions)
        rows = (fmt.NOTHING if n is None else fmt.count(n) for n in (info.rows, info.rows_public))
        cells = (info.deployment, info.name, info.role, info.state, late or fmt.NOTHING, *rows, info.green)
        table.add_row(*(escape(cell) for cell in cells))
    yield table
    for info in found:
        notes = [*([info.detail] if info.detail else []), *_progress(info), *info.changes, *info.held_by]
        if info.lag_versions and info.lag_seconds is not None:
            notes.append(f"behind for {fmt.span(info.lag_seconds)}")
        if info.refreshes:
            size = "" if info.bytes is None else f", {fmt.size(info.bytes)} stored"
            notes.append(f"{fmt.count(info.refreshes)} refreshes took {fmt.seconds(info.seconds)}{size}")
        if info.keep_until is not None:
            notes.append(f"can be taken back until {fmt.moment(info.keep_until)}")
        if info.watched_until is not None:
            then = "is taken back" if info.on_trouble == "rollback" else "it is told"
            notes.append(f"watched until {fmt.moment(info.watched_until)}; {then} on trouble")
        if notes:
            yield escape(f"{info.name}: {'; '.join(notes)}")
        what = "Taking it back" if info.state == "promoted" else "A promotion"
        yield from (escape(f"  {what} would be refused. {why}") for why in info.blocked_by)
    for name, info in {info.deployment: info for info in found if info.auto_promote is not None}.items():
        conditions = ", ".join(f"{key} = {text}" for key, text in (info.auto_promote or {}).items())
        yield escape(f"Deployment {name} promotes itself{f' ({conditions})' if conditions else ''}.")
        if info.refused:
            yield escape(f"  refused when tried last: {info.refused}")


def _late(info: GreenInfo, root: str) -> str:
    """Return by how much a green is behind in a root source."""
    rows = info.lag_rows.get(root)
    counted = "rows unknown" if rows is None else f"up to {fmt.count(rows)} rows"
    return f"{info.lag_versions[root]} of {root}, {counted}"


def _progress(info: GreenInfo) -> Iterator[str]:
    """Yield how far a first load is."""
    if (load := info.progress) is None:
        return
    if load.stage is not None:
        yield f"in stage {load.stage}"
    ended = ", ".join(f"{stage} {fmt.seconds(seconds)}" for stage, seconds in load.stages.items())
    if ended:
        yield f"stages: {ended}"
    rows = "" if load.rows_written is None else f", {fmt.count(load.rows_written)} rows written"
    yield f"{fmt.seconds(load.seconds)} so far{rows}"


def promotion(result: PromotionResult) -> Iterator[RenderableType]:
    """Yield what a promotion, or taking it back, did or would do."""
    from rich.markup import escape

    table = fmt.grid("Stream table", "", "Rows +", "Rows -", "Columns", "The other generation")
    for one in result.tables:
        columns = [f"+{c}" for c in one.columns_added] + [f"-{c}" for c in one.columns_dropped]
        rows = (fmt.NOTHING if n is None else fmt.count(n) for n in (one.rows_inserted, one.rows_deleted))
        cells = (one.name, one.role, *rows, " ".join(columns) or fmt.NOTHING, one.other or fmt.NOTHING)
        table.add_row(*(escape(cell) for cell in cells))
    yield table
    for b in result.broken:
        would = "would be left without" if b.column is None else "would stop" if result.dry_run else "was stopped"
        yield escape(f"{b.reader} {would}: {b.missed} {b.what}")
    for k in result.lost_keys:
        is_ = "would be" if result.dry_run else "is"
        yield escape(f"{k.reader} {is_} recomputed once: {', '.join(k.columns)} is no key of {k.source} any more.")
    if result.followed:
        yield escape(f"Of the same groups, and refreshed along: {', '.join(result.followed)}.")
    for why in result.blocked_by:
        yield escape(f"Would be refused without --force: {why}")
    if result.dry_run:
        yield "Nothing was done: --dry-run. Not tried: refreshes to one cut, groups that follow, and --verify."
    elif result.keep_until is not None:
        yield f"Can be taken back until {fmt.moment(result.keep_until)}: headrace deploy rollback."
