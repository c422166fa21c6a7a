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
    table = fmt.grid("Deployment", "Stream table", "State", "Behind", "Rows", "Public rows", "Queried as")
    for info in found:
        late = ", ".join(f"{number} of {root}" for root, number in info.lag_versions.items())
        rows = (fmt.NOTHING if n is None else fmt.count(n) for n in (info.rows, info.rows_public))
        cells = (info.deployment, info.name, info.state, late or fmt.NOTHING, *rows, info.green)
        table.add_row(*(escape(cell) for cell in cells))
    yield table
    for info in found:
        notes = [*([info.detail] if info.detail else []), *info.changes, *info.held_by]
        notes += [f"{what} of the public table changed since" for what in info.altered]
        if info.keep_until is not None:
            notes.append(f"can be taken back until {fmt.moment(info.keep_until)}")
        if notes:
            yield escape(f"{info.name}: {'; '.join(notes)}")


def promotion(result: PromotionResult) -> Iterator[RenderableType]:
    """Yield what a promotion, or taking it back, did or would do."""
    from rich.markup import escape

    table = fmt.grid("Stream table", "Rows +", "Rows -", "Columns", "The other generation")
    for one in result.tables:
        columns = [f"+{c}" for c in one.columns_added] + [f"-{c}" for c in one.columns_dropped]
        rows = (fmt.NOTHING if n is None else fmt.count(n) for n in (one.rows_inserted, one.rows_deleted))
        table.add_row(escape(one.name), *rows, escape(" ".join(columns)) or fmt.NOTHING, escape(one.other))
    yield table
    for b in result.broken:
        would = "would stop" if result.dry_run else "was stopped"
        yield escape(f"{b.reader} {would}: column {b.column} of {b.source} {b.what}")
    if result.dry_run:
        yield "Nothing was done: --dry-run."
    elif result.keep_until is not None:
        yield f"Can be taken back until {fmt.moment(result.keep_until)}: headrace deploy rollback."
