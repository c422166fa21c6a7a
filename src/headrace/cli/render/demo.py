"""The demonstration's tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import MODE_STYLES, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.demo.run import Round
    from headrace.demo.views import View
    from headrace.results.refresh_results import RefreshResult, VerifyResult


def loaded(rows: dict[str, int]) -> RenderableType:
    """Render the numbers of generated rows."""
    return "Loaded " + ", ".join(f"{table} {fmt.count(number)}" for table, number in rows.items()) + " rows."


def created(results: Sequence[tuple[View, RefreshResult]]) -> Iterator[RenderableType]:
    """Yield the stream tables and their first load."""
    yield "\n[bold]Seven stream tables[/]"
    yield first_loads(results)


def first_loads(results: Sequence[tuple[View, RefreshResult]]) -> RenderableType:
    """Return a table of stream tables and their first load."""
    table = fmt.grid("Stream table", "Is", ("Rows", "right"), ("First load", "right"))
    for view, result in results:
        table.add_row(view.name, view.what, fmt.count(result.rows_inserted), fmt.seconds(result.seconds))
    return table


def round_of(done: Round) -> Iterator[RenderableType]:
    """Yield one round: each refresh beside its whole query."""
    table = fmt.grid(
        "Stream table",
        "Mode",
        ("Inserted", "right"),
        ("Deleted", "right"),
        ("Refresh", "right"),
        ("Whole query", "right"),
    )
    for compared in done.compared:
        refresh = compared.refresh
        table.add_row(
            refresh.name,
            styled(refresh.mode.value, MODE_STYLES),
            fmt.count(refresh.rows_inserted),
            fmt.count(refresh.rows_deleted),
            fmt.seconds(refresh.seconds),
            fmt.seconds(compared.full_seconds),
        )
    yield f"\n[bold]Round {done.number}[/]: {', '.join(change.what for change in done.changes)}"
    yield table
    whole = sum(compared.full_seconds for compared in done.compared)
    yield f"All refreshed in {fmt.seconds(done.refresh_seconds)}; the whole queries take {fmt.seconds(whole)}."


def totals(rounds: Sequence[Round], verified: Sequence[VerifyResult], seconds: float) -> Iterator[RenderableType]:
    """Yield the sum of it."""
    right = sum(result.ok for result in verified)
    refreshes = [compared.refresh for done in rounds for compared in done.compared]
    rows = sum(refresh.rows_inserted + refresh.rows_deleted for refresh in refreshes)
    differential = sum(refresh.mode.value == "DIFFERENTIAL" for refresh in refreshes)
    spent = sum(done.refresh_seconds for done in rounds)
    whole = sum(compared.full_seconds for done in rounds for compared in done.compared)
    yield (
        f"[bold]{right} of {len(verified)} stream tables equal their queries.[/] {len(refreshes)} refreshes "
        f"({differential} DIFFERENTIAL) changed {fmt.count(rows)} rows in {fmt.seconds(spent)};"
    )
    yield (
        f"the whole queries, their results thrown away, take {fmt.seconds(whole)}. "
        f"The demo took {fmt.seconds(seconds)} in all."
    )


def go_on(folder: Path, program: str = "headrace") -> Iterator[RenderableType]:
    """Yield three commands to go on with.

    Args:
        folder: The demonstration's project.
        program: How the reader's shell calls Headrace.
    """
    yield "\nGo on with:"
    yield f"  cd {folder} && {program} status"
    yield f"  {program} explain tpch.segment_revenue"
    yield f'  {program} sql "SELECT * FROM tpch.segment_revenue ORDER BY revenue DESC LIMIT 5"'
