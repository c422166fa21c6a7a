"""The deployment act's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.cli.render.demo import first_loads

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.demo.deployment import Phase, Seen
    from headrace.demo.views import View
    from headrace.results.refresh_results import RefreshResult, VerifyResult


def built(created: Sequence[tuple[View, RefreshResult]]) -> Iterator[RenderableType]:
    """Yield the pipeline, and what is going to happen to it."""
    yield "\n[bold]The running pipeline[/]"
    yield first_loads(created)
    yield "tpch.sales is to leave out what was returned; the others keep their queries. A reader looks at these three."


def heading(phase: Phase) -> RenderableType:
    """Return the line above a phase."""
    return f"\n[bold]{phase.name}[/]: {fmt.seconds(phase.seconds)}"


def totals(
    phases: Sequence[Phase], seen: Mapping[Seen, int], verified: Sequence[VerifyResult], seconds: float
) -> Iterator[RenderableType]:
    """Yield what each phase took, and what the reader saw."""
    kinds = ("old", "new", "mixed", "missing")
    table = fmt.grid("Phase", ("Took", "right"), "Public afterwards", *((f"Saw {k}", "right") for k in kinds))
    for phase in phases:
        counts = {kind.value: number for kind, number in phase.looks.items()}
        table.add_row(
            phase.name, fmt.seconds(phase.seconds), phase.after.value, *(fmt.count(counts.get(k, 0)) for k in kinds)
        )
    yield "\n[bold]What the reader saw[/]"
    yield table
    of = {kind.value: number for kind, number in seen.items()}
    right = sum(result.ok for result in verified)
    old, new, mixed, missing = (of.get(kind, 0) for kind in kinds)
    yield (
        f"[bold]{fmt.count(sum(of.values()))} looks: {old} saw the old generation whole, {new} the new one; "
        f"{mixed} a mixture, {missing} a missing table.[/]"
    )
    yield f"{right} of {len(verified)} stream tables equal their queries. It took {fmt.seconds(seconds)} after loading."


def go_on(folder: Path, program: str) -> Iterator[RenderableType]:
    """Yield commands to go on with: the greens are there still."""
    yield "\nThe greens are greens again. Go on with:"
    yield f"  cd {folder} && {program} deploy status"
    yield f"  {program} deploy promote --all green"
    yield f"  {program} deploy cancel --all green"
