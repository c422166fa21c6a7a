"""Declared keys, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.api.declared_keys import KeyInfo


def keys(found: Sequence[KeyInfo]) -> Iterator[RenderableType]:
    """Yield a line for each."""
    from rich.markup import escape

    if not found:
        yield "No key is declared."
        return
    table = fmt.grid("Source", "Key", "Since", "Read by", "To recompute")
    for info in found:
        lists = (escape(", ".join(names)) or fmt.NOTHING for names in (info.read_by, info.to_recompute))
        table.add_row(escape(info.source), escape(", ".join(info.columns)), fmt.moment(info.declared_at), *lists)
    yield table
