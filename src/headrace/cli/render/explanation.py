"""How a stream table is refreshed, in words and SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.cli.render.tables import MODE_STYLES, styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.engine.results import Explanation, RefusalInfo


def explanation(found: Explanation) -> Iterator[RenderableType]:
    """The mode and its reason, what stands in the way, then the sections as they are."""
    from rich.markup import escape
    from rich.rule import Rule
    from rich.text import Text

    mode = styled(found.mode.value, MODE_STYLES)
    why = f" ({found.reason.value}: {escape(found.reason.sentence)})" if found.reason else ""
    yield f"[bold]{escape(found.name or 'This query')}[/]: {mode}{why}"
    for refusal in found.refusals:
        yield _refusal(refusal)
    for title, text in found.sections:
        yield Rule(Text(title, style="bold"), align="left", style="dim")
        yield Text(text)


def _refusal(refusal: RefusalInfo) -> RenderableType:
    from rich.text import Text

    place = f" (line {refusal.line}, column {refusal.column})" if refusal.line else ""
    hint = f"\n    Hint: {refusal.hint}" if refusal.hint else ""
    return Text.assemble(
        ("  ! ", "yellow"), f"{refusal.code.value} {refusal.construct}{place}: {refusal.message}{hint}"
    )
