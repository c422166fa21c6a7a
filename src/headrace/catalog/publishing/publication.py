"""A publication as data: what becomes visible together, and what must still be true for it.

Building one has no effect; `Catalog.publish` applies it in one database transaction, or not at all.
"""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass, field

from headrace.catalog.records import Definition, Green, HistoryEntry, Json, Lease
from headrace.catalog.sources.database_sources import SourceMove
from headrace.errors import InternalError
from headrace.frontier import Frontier
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Swap:
    """A stored table whose `lake` row receives the `metadata_location` of its `staging` row.

    Args:
        name: The stored table (state, companion or log); its catalog part does not matter.
        expected: The `lake` metadata_location that the refresh started from; None when there was no row (first load).
        staged: The `staging` metadata_location that the refresh wrote; another one in the catalog refuses the
            publication. None does not check.
        overwrite_foreign: Publish although somebody else wrote to the table since Headrace's last publication
            (a FULL refresh repairs that). The `lake` row must equal `expected` in any case.
    """

    name: TableName
    expected: str | None
    staged: str | None = None
    overwrite_foreign: bool = False


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that a stream table reaches.

    Args:
        relation: The stream table.
        version: Its newest version + 1; 0 when it has none.
        snapshot_id: The state's snapshot; None while the state is empty and has none.
        row_count: Rows in the state where known.
        table_uuid: Iceberg's UUID of the state where known.
    """

    relation: TableName
    version: int
    snapshot_id: int | None
    row_count: int | None = None
    table_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class FrontierMove:
    """A stream table's frontier after the publication; the table becomes ACTIVE.

    Args:
        stream: The stream table.
        frontier: Version of each of its sources; replaces the old frontier, and may not go back in any source.
        generation: The definition's generation that was computed; another one in the catalog refuses the publication.
        skipped: Changed rows of sources that the contents do not reflect although the frontier says so.
        skipped_since: Since when, where that is known of contents that come from elsewhere; None for now.
        companion_behind: Whether the companion stays what it was while the contents do not; None where it is as much
            behind as before.
        details: The engine's facts of the same definition over other sources; None where they stay.
    """

    stream: TableName
    frontier: Frontier
    generation: int | None = None
    skipped: int = 0
    skipped_since: dt.datetime | None = None
    companion_behind: bool | None = None
    details: Json | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """A stored table that appears under another name, in `lake` and `staging`; no data moves.

    Renames of one publication happen at once and before its swaps, so two tables can swap names. Only pointers are
    renamed: definitions, versions and frontiers keep their names.
    """

    old: TableName
    new: TableName


@dataclass(frozen=True, slots=True)
class LogChange:
    """The change log that a stream table keeps from a publication on, if it keeps one.

    Args:
        stream: The stream table.
        log: The change log; None when it keeps none any more.
    """

    stream: TableName
    log: TableName | None


@dataclass(frozen=True, slots=True)
class Stop:
    """A stream table that cannot go on, and why.

    Args:
        stream: The stream table.
        code: The error's code.
        reason: The sentence for it.
    """

    stream: TableName
    code: str
    reason: str


def new_uuid() -> str:
    """Return a fresh publication UUID."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Publication:
    """Everything that one publication changes.

    Applied in this order: leases checked; relations renamed; definitions written; stream tables dropped; stored tables
    deleted, renamed and swapped; versions, frontiers and history written; stream tables stopped,
    paused and unpaused.

    Args:
        swaps: Stored tables that show new contents.
        versions: New versions of stream tables and mirrors.
        frontiers: New frontiers of stream tables.
        history: Entries to record, with the publication's id.
        leases: Leases the publisher holds; each token must still be the newest of its resource.
        definitions: Stream tables created, or replaced when they exist.
        drops: Stream tables that end; their stored tables go with `deletes`.
        deletes: Stored tables whose `lake` and `staging` rows go; absent ones are no error.
        renames: Stored tables that change names.
        groups: Groups that are published by it, each by all its members; the epoch of each grows by one.
        sources: New positions of database sources; their mirrors' contents come with `swaps` and `versions`.
        source_drops: Database sources that end; their stored tables go with `deletes`.
        relation_renames: Stream tables that get other names; all else that is published has the new ones, and their
            stored tables are renamed with `renames`.
        greens: Second generations that begin, or are exchanged with the public ones.
        greens_ended: Members that leave their deployments, and stay the stream tables that they are.
        stops: Stream tables that cannot go on after it.
        logs: Stream tables that begin to keep a change log, or end it.
        pauses: Stream tables that are left alone after it.
        unpauses: Stream tables that are not paused after it.
        uuid: Identifies the publication when its outcome is unknown; publishing it twice has the effect of once.
    """

    swaps: tuple[Swap, ...] = ()
    versions: tuple[NewVersion, ...] = ()
    frontiers: tuple[FrontierMove, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    leases: tuple[Lease, ...] = ()
    definitions: tuple[Definition, ...] = ()
    drops: tuple[TableName, ...] = ()
    deletes: tuple[TableName, ...] = ()
    renames: tuple[Rename, ...] = ()
    groups: tuple[tuple[TableName, ...], ...] = ()
    sources: tuple[SourceMove, ...] = ()
    source_drops: tuple[str, ...] = ()
    relation_renames: tuple[Rename, ...] = ()
    greens: tuple[Green, ...] = ()
    greens_ended: tuple[TableName, ...] = ()
    stops: tuple[Stop, ...] = ()
    logs: tuple[LogChange, ...] = ()
    pauses: tuple[TableName, ...] = ()
    unpauses: tuple[TableName, ...] = ()
    uuid: str = field(default_factory=new_uuid)


def invalid(detail: str) -> InternalError:
    """Return the error for a publication that contradicts the catalog."""
    return InternalError(
        "PUBLICATION_INVALID", "A publication does not fit the catalog; nothing was published.", detail=detail
    )
