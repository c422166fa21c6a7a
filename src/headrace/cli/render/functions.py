"""The project's Python functions, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.refresh_results import FunctionInfo


def functions(found: Sequence[FunctionInfo]) -> Iterator[RenderableType]:
    """Yield a line for each, and what is to be recomputed."""
    from rich.markup import escape

    if not found:
        yield "There are no functions; functions.py in the project folder would declare them."
        return
    table = fmt.grid("Function", "Returns", "Deterministic", "Body", "Called by", "To recompute")
    for info in found:
        if info.returns is None:
            kind = ("[bold red]not declared any more[/]", fmt.NOTHING, fmt.NOTHING)
        else:
            kind = (escape(info.returns), "yes" if info.deterministic else "no", info.fingerprint or fmt.NOTHING)
        table.add_row(
            info.name, *kind, *(escape(", ".join(t)) or fmt.NOTHING for t in (info.called_by, info.to_recompute))
        )
    yield table
