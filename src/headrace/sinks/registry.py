"""List the kinds of sinks; everything above `sinks` asks here, and knows no kind by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import Unsupported

if TYPE_CHECKING:
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

Json = Mapping[str, Any]


class SinkKind(Protocol):
    """A kind of sink."""

    @property
    def name(self) -> str:
        """Return its name, as catalogs have it; statements write it in capitals: `INTO POSTGRES`."""
        ...

    @property
    def create_form(self) -> str:
        """Return the form of its CREATE SINK, as errors show it."""
        ...

    def read_options(self, cursor: StatementCursor) -> Json:
        """Read what follows `INTO KIND` in a statement, as options for the catalog.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        ...

    def position(self, options: Json) -> int | None:
        """Ask the target which version of the stream table its rows are; None before the first.

        Rows and position are written in one transaction there, and nothing else makes a sink exactly once.
        """
        ...

    def health(self, options: Json) -> Json:
        """Find out how the target stands, by names of the kind's own."""
        ...


KINDS: tuple[SinkKind, ...] = ()


def unknown_kind(name: str) -> Unsupported:
    """Return the error for an unknown kind of sink."""
    kinds = ", ".join(kind.name.upper() for kind in KINDS)
    return Unsupported(
        "SINK_KIND_UNKNOWN",
        f"There is no kind of sink {name}, so that nothing was created.",
        detail=f"This version of Headrace has {f'sinks of kind {kinds}' if kinds else 'no kind of sink yet'}.",
        hint="Read the stream table where it is, with any engine that reads Iceberg, and write its rows from there.",
    )
