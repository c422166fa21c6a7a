"""Results of moving a project to another lake: frozen data, printable, JSON-able."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class MovedTable(Record):
    """A table of a project that moves.

    Args:
        name: The table or view.
        kind: `stream table`, `companion`, `change log`, `mirror`, `table` or `view`.
        action: `registered`, `registered anew` in place of an earlier state of it, or `there already`; `taken over`
            on the way back. With a dry run, what would be done.
        location: Its metadata file.
    """

    name: str
    kind: str
    action: str
    location: str


@dataclass(frozen=True, slots=True)
class CatalogMove(Record):
    """The outcome of moving a project, or what a dry run would do.

    Args:
        source: Where its tables were, in words.
        target: Where they are now.
        moved: Whether anything was changed: neither by a dry run, nor where they were there already.
        tables: Its tables and views.
        namespaces: Namespaces that were created there.
        left: Tables beside it that stay in the server and are not the project's.
        notes: What is left to do for people.
        seconds: How long it took.
    """

    source: str
    target: str
    moved: bool
    tables: tuple[MovedTable, ...]
    namespaces: tuple[str, ...]
    left: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
