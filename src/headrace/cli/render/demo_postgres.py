"""The second act's lines: one for each look at the lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.demo.postgres import Look
    from headrace.demo.views import View
    from headrace.results.refresh_results import VerifyResult
    from headrace.results.source_results import LandingResult


def built(landed: LandingResult, views: Sequence[View]) -> Iterator[RenderableType]:
    """Render the captured tables, and the stream tables over them."""
    yield f"Captured {', '.join(landed.mirrors)}: {fmt.count(landed.rows)} rows in {fmt.seconds(landed.seconds)}."
    table = fmt.grid("Stream table", "Is")
    for view in views:
        table.add_row(view.name, view.what)
    yield table


def headings() -> Iterator[RenderableType]:
    """Yield the lines above the looks."""
    yield "\n[bold]Live[/]: customers pay each other, a transaction each; the lake follows"
    yield f"[dim]{'Time':>8}{'Committed':>11}{'In the lake':>13}{'Rows changed':>14}{'Behind':>13}{'Total':>12}[/]"


def look(seen: Look) -> RenderableType:
    """Return one look."""
    behind = fmt.NOTHING if seen.behind is None else fmt.seconds(seen.behind)
    mark = "[green]agrees[/]" if seen.agree else "[bold red]is not what it must be[/]"
    return (
        f"{fmt.seconds(seen.seconds):>8}{fmt.count(seen.committed):>11}{fmt.count(seen.payments):>13}"
        f"{fmt.count(seen.changed):>14} {behind:>12}{fmt.count(seen.total):>12}  {mark}"
    )


def totals(
    looks: Sequence[Look], verified: Sequence[VerifyResult], same: bool, seconds: float
) -> Iterator[RenderableType]:
    """Yield the sum of it."""
    right, agreed = sum(result.ok for result in verified), sum(seen.agree for seen in looks)
    behind = sorted(seen.behind for seen in looks[:-1] if seen.behind is not None)
    middle = f", behind by {fmt.seconds(behind[len(behind) // 2])} in the middle" if behind else ""
    equal = "equal" if same else "[bold red]do not equal[/]"
    yield f"[bold]{right} of {len(verified)} stream tables equal their queries; mirrors {equal} PostgreSQL's tables.[/]"
    yield (
        f"{fmt.count(looks[-1].committed)} transactions, seen at {len(looks)} moments{middle}: the sums agreed at "
        f"{agreed} of them. The demo took {fmt.seconds(seconds)} in all."
    )


def go_on(folder: Path, program: str) -> Iterator[RenderableType]:
    """Yield commands to go on with; the server is gone, the project stays."""
    yield "\nThe server is gone and its source on hold; the project stays:"
    yield f"  cd {folder} && {program} source list"
    yield f'  {program} sql "SELECT * FROM bank.flows ORDER BY region"'
    yield f"  {program} history bank.everybody"
