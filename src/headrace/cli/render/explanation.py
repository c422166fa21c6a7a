"""Renders how a stream table is refreshed, in words and SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render.tables import MODE_STYLES, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.results.refresh_results import Explanation, RefusalInfo

LINES = 150
CHARACTERS = 12_000
"""Lines and characters shown of a section; a query of sixty tables has thousands of lines."""

HEADING = 100
"""Columns of the line above a section, however wide a file is."""

STEPS = "steps"
"""The section of an analysis that is shown on request."""


def explanation(found: Explanation, *, whole: bool = False) -> Iterator[RenderableType]:
    """Yield the mode and its reason, what stands in the way, then the sections.

    Args:
        found: What is told.
        whole: Show long sections to their end.
    """
    from rich.constrain import Constrain
    from rich.markup import escape
    from rich.rule import Rule
    from rich.text import Text

    mode = styled(found.mode.value, MODE_STYLES)
    why = f" ({found.reason.value}: {escape(found.reason.sentence)})" if found.reason else ""
    yield f"[bold]{escape(found.name or 'This query')}[/]: {mode}{why}"
    for refusal in found.refusals:
        yield _refusal(refusal)
    for title, text in found.sections:
        if title == STEPS and not whole:
            yield Text("Give --whole (or --json) with the next refresh to see each step.", style="dim")
            continue
        yield Constrain(Rule(Text(title, style="bold"), align="left", style="dim"), HEADING)
        yield from _section(text, whole=whole)


def _section(text: str, *, whole: bool) -> Iterator[RenderableType]:
    """Yield a section, or its first lines and how to see all of it."""
    from rich.text import Text

    shown = text if whole else _beginning(text)
    yield Text(shown)
    if shown != text:
        lines = text.count("\n") + 1
        yield Text(f"… {lines:,} lines in all: `headrace explain --whole` shows them, --json has them", style="dim")


def _beginning(text: str) -> str:
    """Return the first lines of a text; the text itself where it is short."""
    if len(text) <= CHARACTERS:
        return "\n".join(text.split("\n")[:LINES])
    cut = text[:CHARACTERS].split("\n")[:LINES]
    return "\n".join(cut[:-1] if len(cut) > 1 else cut)


def _refusal(refusal: RefusalInfo) -> RenderableType:
    from rich.text import Text

    place = f" (line {refusal.line}, column {refusal.column})" if refusal.line else ""
    hint = f"\n    Hint: {refusal.hint}" if refusal.hint else ""
    return Text.assemble(
        ("  ! ", "yellow"), f"{refusal.code.value} {refusal.construct}{place}: {refusal.message}{hint}"
    )
