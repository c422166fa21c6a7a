"""List the kinds of sinks; everything above `sinks` asks here, and knows no kind by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import Unsupported
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK

if TYPE_CHECKING:
    from headrace.sinks.sink_kind import SinkKind

KINDS: tuple[SinkKind, ...] = (POSTGRES_SINK,)
"""The first is meant where none is named."""


def sink_kind_of(name: str) -> SinkKind:
    """Find a kind by its name.

    Raises:
        Unsupported: `SINK_KIND_UNKNOWN`.
    """
    for kind in KINDS:
        if kind.name == name.lower():
            return kind
    kinds = ", ".join(kind.name.upper() for kind in KINDS)
    raise Unsupported(
        "SINK_KIND_UNKNOWN",
        f"There is no kind of sink {name}, so that nothing was created.",
        detail=f"This version of Headrace has sinks of kind {kinds}.",
        hint="Read the stream table where it is, with any engine that reads Iceberg, and write its rows from there.",
    )
