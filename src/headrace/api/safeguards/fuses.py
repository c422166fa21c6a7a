"""Blown fuses, and what is decided about them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.names import TableName
from headrace.refresh.fuses.fuse import Resolution, evidence_from
from headrace.refresh.groups.grouping import Grouping
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class BlownFuse(Record):
    """A stream table whose sources changed more than its fuse allows.

    Args:
        name: The stream table.
        at: When the fuse blew.
        rows: Changed rows of its sources then.
        limit: How many it allows.
        rule: The property that says so: `fuse_ceiling` or `fuse_factor`.
        sources: Changed rows by source, the most first.
        usual: The median of its recent changes; None where there were none.
        largest: The largest of them.
        evidence: All that in words.
    """

    name: str
    at: dt.datetime
    rows: int
    limit: int
    rule: str
    sources: Mapping[str, int]
    usual: int | None
    largest: int | None
    evidence: str


def blown_fuses(catalog: Catalog) -> tuple[BlownFuse, ...]:
    """Return the blown fuses; see `Headrace.fuses`."""
    found = []
    for name, scheduling in sorted(catalog.scheduling_states().items()):
        if scheduling.fuse_at is not None and scheduling.fuse is not None:
            evidence = evidence_from(scheduling.fuse)
            found.append(BlownFuse(str(name), scheduling.fuse_at, **evidence.as_dict(), evidence=evidence.sentence))
    return tuple(found)


def went_past(name: str) -> str:
    """Return the notice for a new definition of a stream table whose fuse was blown.

    The change that the fuse kept out was one of the old contents; the new ones have never been without it.
    """
    return (
        f"The fuse of {name} had blown. Its new definition was computed from what the sources are now, "
        "so that the change which the fuse kept out is in it."
    )


def parse_resolution(text: str) -> Resolution:
    """Return the resolution of that name, in any case.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    try:
        return Resolution(text.strip().lower())
    except ValueError:
        raise UserError(
            "INVALID_OPTION", f"A fuse cannot be resolved by '{text}'.", hint="Use apply, skip or reinitialize."
        ) from None


def to_resolve(catalog: Catalog, grouping: Grouping, name: TableName) -> tuple[TableName, ...]:
    """Return the stream tables of one's group whose fuses have blown.

    What is published together is decided about together; one fuse alone would keep the group back for ever.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`, `FUSE_NOT_BLOWN`.
    """
    table, scheduling = catalog.stream_table(name), catalog.scheduling_states()
    blown = tuple(n for n in grouping.members(table.name) if n in scheduling and scheduling[n].fuse_at is not None)
    if table.name not in blown:
        raise UserError(
            "FUSE_NOT_BLOWN", f"The fuse of {table.name} has not blown.", hint="`headrace fuse` lists those that have."
        )
    return blown
