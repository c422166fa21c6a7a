"""The demonstration's tables and bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.tables import MODE_STYLES, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.demo.against_spark import Round, Total
    from headrace.demo.killed import Killed
    from headrace.demo.live import Followed
    from headrace.demo.views import View
    from headrace.results.refresh_results import RefreshResult, VerifyResult

BAR = 32
"""Characters of the longest bar."""


def loaded(rows: dict[str, int]) -> RenderableType:
    """Render the numbers of generated rows."""
    return "Loaded " + ", ".join(f"{table} {fmt.count(number)}" for table, number in rows.items()) + " rows."


def created(results: Sequence[tuple[View, RefreshResult]]) -> Iterator[RenderableType]:
    """Yield the stream tables and their first load."""
    yield f"\n[bold]{len(results)} stream tables[/]; plain Spark will keep the same tables by INSERT OVERWRITE"
    yield first_loads(results)


def first_loads(results: Sequence[tuple[View, RefreshResult]]) -> RenderableType:
    """Return a table of stream tables and their first load."""
    table = fmt.grid("Stream table", "Is", ("Rows", "right"), ("First load", "right"))
    for view, result in results:
        table.add_row(view.name, view.what, fmt.count(result.rows_inserted), fmt.seconds(result.seconds))
    return table


def round_of(done: Round) -> Iterator[RenderableType]:
    """Yield one round: each refresh beside plain Spark."""
    table = fmt.grid(
        "Table",
        "Mode",
        ("Inserted", "right"),
        ("Deleted", "right"),
        ("Refresh", "right"),
        ("INSERT OVERWRITE", "right"),
    )
    for compared in done.compared:
        refresh = compared.refresh
        table.add_row(
            refresh.name,
            styled(refresh.mode.value, MODE_STYLES),
            fmt.count(refresh.rows_inserted),
            fmt.count(refresh.rows_deleted),
            fmt.seconds(refresh.seconds),
            fmt.seconds(compared.plain_seconds),
        )
    yield f"\n[bold]Round {done.number}[/]: {', '.join(change.what for change in done.changes)}"
    yield table
    yield (
        f"All refreshed in {fmt.seconds(done.refresh_seconds)}; plain Spark overwrites them in "
        f"{fmt.seconds(done.plain_seconds)}."
    )


def bars(found: Sequence[Total]) -> Iterator[RenderableType]:
    """Yield two bars for each table: all its overwriting, all its refreshes."""
    longest = max(max(total.plain_seconds, total.refresh_seconds) for total in found)
    width = max(len(total.view.name) for total in found)
    yield "\n[bold]All rounds[/]: plain Spark's INSERT OVERWRITE, and the refresh"
    for total in found:
        became = f"{fmt.seconds(total.plain_seconds)} became {fmt.seconds(total.refresh_seconds)}"
        yield f"{total.view.name:<{width}}  [dim]{_bar(total.plain_seconds, longest)}[/]"
        yield f"{'':<{width}}  [green]{_bar(total.refresh_seconds, longest)}[/] {became}"


def live(change: Followed) -> RenderableType:
    """Return the line of a change that was followed."""
    return f"  {change.what}: in every stream table after {fmt.seconds(change.seconds)}"


def killed(dead: Killed, shown: int, expected: int) -> Iterator[RenderableType]:
    """Yield what became of a refresh that was killed.

    Args:
        dead: The process.
        shown: Rows that readers saw of the largest table afterwards.
        expected: Rows that they saw before.
    """
    same = "as before" if shown == expected else f"[bold red]not {fmt.count(expected)} as before[/]"
    yield f"\n[bold]Killed[/] process {dead.pid} as it wrote {dead.table}; readers see {fmt.count(shown)} rows, {same}."


def taken_over(seconds: float) -> RenderableType:
    """Return the line of the refresh after that."""
    return f"The next refresh took over what the dead one held, and was done in {fmt.seconds(seconds)}."


def totals(
    rounds: Sequence[Round], found: Sequence[Total], verified: Sequence[VerifyResult], seconds: float
) -> Iterator[RenderableType]:
    """Yield the sum of it: the ratio last, and where it does not pay."""
    right = sum(result.ok for result in verified)
    spent, plain = sum(done.refresh_seconds for done in rounds), sum(done.plain_seconds for done in rounds)
    least = min(found, key=lambda total: total.ratio)
    yield (
        f"[bold]{right} of {len(verified)} stream tables equal their queries.[/] "
        f"The demo took {fmt.seconds(seconds)} in all."
    )
    yield (
        f"[bold]{fmt.seconds(plain)} of overwriting became {fmt.seconds(spent)} of refreshing: "
        f"{plain / spent:.1f} ×[/] (least: {least.view.name}, {least.ratio:.1f} ×)."
    )
    yield (
        "It pays less, or not at all, where tables are small, where a tenth of the rows changes at once, and where each"
        " refresh has to start Spark; AUTO then recomputes. BENCHMARKS has the figures."
    )


def go_on(folder: Path, program: str) -> Iterator[RenderableType]:
    """Yield three commands to go on with.

    Args:
        folder: The demonstration's project.
        program: How the reader's shell calls Headrace.
    """
    yield "\nGo on with:"
    yield f"  cd {folder} && {program} status"
    yield f"  {program} explain tpch.part_sales"
    yield f'  {program} sql "SELECT * FROM tpch.part_sales ORDER BY revenue DESC LIMIT 5"'


def _bar(value: float, longest: float) -> str:
    """Return a bar in eighths of a character."""
    eighths = max(1, round(value / longest * BAR * 8))
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]
