"""Frozen records of the catalog: what readers return and what writers take.

Nothing here knows a database. Times are aware and in UTC; JSON fields are plain mappings of JSON values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headrace.frontier import Frontier
from headrace.names import TableName

Json = Mapping[str, Any]
"""A JSON object whose meaning belongs to the engine, not to the catalog."""


class RelationKind(StrEnum):
    """The writer of a relation: Headrace, or somebody else."""

    SOURCE = "source"
    STREAM = "stream"


class RefreshMode(StrEnum):
    """The refresh mode that the user set for a stream table."""

    AUTO = "AUTO"
    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"


class RanAs(StrEnum):
    """The mode in which a refresh ran."""

    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"
    NO_CHANGE = "NO_CHANGE"


class Status(StrEnum):
    """The status of a stream table: never published, published, stopped, or changed by others."""

    NEW = "NEW"
    ACTIVE = "ACTIVE"
    STOPPED = "STOPPED"
    DAMAGED = "DAMAGED"
    """Never stored: another program changed what it is stored in, as its pointers tell."""


class Outcome(StrEnum):
    """The outcome of a refresh."""

    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Definition:
    """A stream table's definition, as written by create and replace.

    Args:
        name: The stream table; always in `lake`.
        query: The defining query as the user wrote it.
        sources: The relations it reads, each once; unknown ones become sources.
        refresh_mode: What the user asked for.
        schedule: The schedule's text, or None for `DOWNSTREAM`.
        details: The engine's own facts: semantics, output schema, key, companion columns, default namespace.
        companion: The stored table of its accumulators, or None.
        log: Its change log, or None while nobody reads its changes.
        options: How it is scheduled: texts by key; None keeps those of the definition that is replaced.
        settings_kept: Whether mode and schedule stay as the replaced definition has them when this one is published:
            nobody gave them, and an ALTER meanwhile holds.
    """

    name: TableName
    query: str
    sources: tuple[TableName, ...]
    refresh_mode: RefreshMode = RefreshMode.AUTO
    schedule: str | None = None
    details: Json = field(default_factory=dict)
    companion: TableName | None = None
    log: TableName | None = None
    options: Mapping[str, str] | None = None
    settings_kept: bool = False


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A stream table in the catalog: the fields of `Definition`, and its status.

    Args:
        id: Stays the same over replace and alter, and ends with a drop.
        generation: 1 at first, one more with every replaced definition.
        stopped_code: Error code that stopped it, while `status` is STOPPED.
        stopped_reason: The sentence for it.
        companion_behind: Whether the companion is of an earlier state of the table: it was recomputed without it.
    """

    id: int
    name: TableName
    query: str
    sources: tuple[TableName, ...]
    refresh_mode: RefreshMode
    schedule: str | None
    details: Json
    companion: TableName | None
    log: TableName | None
    generation: int
    status: Status
    stopped_code: str | None
    stopped_reason: str | None
    created_at: dt.datetime
    options: Mapping[str, str] = field(default_factory=dict)
    companion_behind: bool = False

    @property
    def stored(self) -> tuple[TableName, ...]:
        """Return the stored tables it consists of.

        State first, then companion and log where it has them.
        """
        return tuple(t for t in (self.name, self.companion, self.log) if t is not None)


class Role(StrEnum):
    """Says what a promotion does with a member of a deployment."""

    EXCHANGE = "exchange"
    """It is exchanged with the public stream table that it stands beside."""

    NEW = "new"
    """It becomes a public stream table, of a name that there is none of."""

    DROP = "drop"
    """It is a public stream table, and is one no longer."""


@dataclass(frozen=True, slots=True)
class Green:
    """A member of a deployment: a green, or, after a promotion, what was public before.

    Args:
        name: The stream table that is this member.
        deployment: The deployment that it belongs to.
        original: The public stream table; for one that is new, or was dropped, the name of it.
        blue: What the public one was when this was made, or promoted: generation and settings; another one now means
            that it was altered since.
        created_at: When it was made.
        promoted_at: When it was exchanged with the public one; None before.
        keep_until: How long it is kept after that.
        role: What a promotion does with it.
        watch: How the public one is watched after that, in the deploying room's own form; None when it is not.
    """

    name: TableName
    deployment: str
    original: TableName
    blue: Json
    created_at: dt.datetime
    promoted_at: dt.datetime | None = None
    keep_until: dt.datetime | None = None
    role: Role = Role.EXCHANGE
    watch: Json | None = None

    @property
    def public(self) -> bool:
        """Return whether it is the public stream table itself: to be dropped, or new and promoted."""
        return self.name == self.original


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that the catalog numbers versions of.

    Args:
        table_uuid: Iceberg's UUID of the table when last observed or published; None when never seen.
        schema: Its columns when last observed, in the engine's own JSON form; None when never seen.
    """

    id: int
    name: TableName
    kind: RelationKind
    table_uuid: str | None
    schema: Json | None


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a relation and the Iceberg snapshot it is bound to.

    Args:
        snapshot_id: None for a table without a snapshot, that is an empty one.
        row_count: Rows at that version where known.
        committed_at: When the snapshot was committed (sources) or published (stream tables).
        publication_id: The publication that made it; None for sources.
        table_uuid: Iceberg's UUID of the table then; a different one than before means dropped and created again.
    """

    relation: TableName
    version: int
    snapshot_id: int | None
    row_count: int | None
    committed_at: dt.datetime
    publication_id: int | None
    table_uuid: str | None


@dataclass(frozen=True, slots=True)
class Observation:
    """The head of a source, as somebody just saw it.

    Args:
        source: The relation.
        snapshot_id: Its current snapshot; None for a table without one.
        table_uuid: Iceberg's UUID; None when the catalog behind it has none.
        row_count: Rows at the snapshot where known.
        committed_at: When the snapshot was committed; the catalog's clock when None.
        schema: Its columns; None leaves what the catalog has.
    """

    source: TableName
    snapshot_id: int | None
    table_uuid: str | None = None
    row_count: int | None = None
    committed_at: dt.datetime | None = None
    schema: Json | None = None


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """A publication that happened.

    Args:
        id: Grows in the order publications became visible.
        uuid: Chosen by the publisher; finds out whether a publication with unknown outcome happened.
    """

    id: int
    uuid: str
    published_at: dt.datetime


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One refresh of one stream table; survives the drop of the table.

    Args:
        stream: The stream table's name then.
        started_at: When the refresh began.
        finished_at: When it ended, before publishing.
        mode: How it ran.
        outcome: Whether it was published.
        reason: A `FullReason` code for FULL, else None.
        reason_detail: The sentence for it.
        rows_inserted: Rows added to the state.
        rows_deleted: Rows taken from it.
        rows_after: Rows in the state afterwards where known.
        stages: Seconds per stage, in the order they ran.
        metrics: Jobs, bytes, rows read and the like.
        frontier: Where the refresh went (or tried to go).
        error_code: Code of the error for a failed one.
        error_message: Its text.
        id: Given by the catalog; None for an entry not yet written.
        stream_id: Given by the catalog.
        publication_id: Given by the catalog; None for a failed refresh.
        epoch: Given by the catalog: which publication of its group it was; None for a table alone.
    """

    stream: TableName
    started_at: dt.datetime
    finished_at: dt.datetime
    mode: RanAs
    outcome: Outcome = Outcome.OK
    reason: str | None = None
    reason_detail: str | None = None
    rows_inserted: int = 0
    rows_deleted: int = 0
    rows_after: int | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    metrics: Json = field(default_factory=dict)
    frontier: Frontier | None = None
    error_code: str | None = None
    error_message: str | None = None
    id: int | None = None
    stream_id: int | None = None
    publication_id: int | None = None
    epoch: int | None = None

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class LastRefresh:
    """The outcome of a stream table's newest refresh; arguments as of `HistoryEntry`."""

    stream: TableName
    started_at: dt.datetime
    finished_at: dt.datetime
    mode: RanAs
    outcome: Outcome
    reason: str | None
    error_message: str | None

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Reached:
    """The frontier that a stream table reflected from a moment on.

    Args:
        stream: The stream table.
        at: When it was published.
        version: Its version.
        frontier: Its frontier.
    """

    stream: TableName
    at: dt.datetime
    version: int
    frontier: Frontier


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to refresh and publish a resource, until it expires and somebody else takes it.

    Args:
        resource: What it is on; `resource_of(name)` for a table.
        owner: Who holds it; None once released.
        token: Fencing token: grows with every owner of the resource and never repeats.
        expires_at: When another owner may take it over.
        heartbeat_at: When the owner last prolonged it.
    """

    resource: str
    owner: str | None
    token: int
    expires_at: dt.datetime
    heartbeat_at: dt.datetime


def resource_of(name: TableName) -> str:
    """Return the lease resource of a stream table or of a single stored table."""
    return ".".join(name.parts)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A row of Iceberg's `iceberg_tables`: which metadata file is the table (or view) now."""

    name: TableName
    metadata_location: str
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class Retired:
    """A stored table that nothing shows any more, whose files are still there.

    Args:
        name: What it was called, made unique.
        metadata_location: Its last metadata file, from which all its files can be found.
        at: When it was taken away.
    """

    name: str
    metadata_location: str
    at: dt.datetime

    @property
    def folder(self) -> str:
        """Return the folder of its files."""
        return folder_of(self.metadata_location)


def folder_of(metadata_location: str) -> str:
    """Return the folder of the table that a metadata file belongs to.

    Two tables never share one.
    """
    return metadata_location.rsplit("/metadata/", 1)[0]


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """A stored table whose `lake` pointer is not what Headrace published last.

    Args:
        published: The metadata file Headrace published.
        found: The one that is there now; None when the row is gone.
    """

    name: TableName
    published: str
    found: str | None

    @property
    def what(self) -> str:
        """Return what happened to it, after its name."""
        return "was dropped" if self.found is None else "was written by another program"


@dataclass(frozen=True, slots=True)
class SchedulingState:
    """Pauses, failures, fuse and skipped rows of a stream table.

    Args:
        paused_at: Since when somebody wants it left alone.
        failures: Refreshes that failed since the last one that did not.
        retry_at: Not to be tried again before.
        suspended_at: Since when it is not tried any more, until somebody resumes it.
        error_code: Code of the last failure.
        error_message: Its text.
        fuse_at: Since when a change that was too large is not applied, until somebody resolves it.
        fuse: The evidence, in the engine's own form.
        skipped_at: Since when it is known to differ from its query, because changes were skipped.
        skipped_rows: How many changed rows of its sources were.
    """

    paused_at: dt.datetime | None = None
    failures: int = 0
    retry_at: dt.datetime | None = None
    suspended_at: dt.datetime | None = None
    error_code: str | None = None
    error_message: str | None = None
    fuse_at: dt.datetime | None = None
    fuse: Json | None = None
    skipped_at: dt.datetime | None = None
    skipped_rows: int = 0

    @property
    def held_up(self) -> str | None:
        """Return why a table is not refreshed; None when nothing stops it.

        One of `stopped by its fuse`, `paused`, `suspended`, `retrying`.
        """
        if self.fuse_at is not None:
            return "stopped by its fuse"
        if self.paused_at is not None:
            return "paused"
        if self.suspended_at is not None:
            return "suspended"
        return "retrying" if self.retry_at is not None else None


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """Number of a group's publications, as one of its members knows it.

    Args:
        epoch: Counts the publications of the groups that the member was in.
        publication: The last one.
    """

    epoch: int
    publication: PublicationRecord


@dataclass(frozen=True, slots=True)
class SchedulerRecord:
    """A process that runs schedules.

    Args:
        owner: Host, process and something unique.
        started_at: When it began.
        expires_at: Taken for dead when it was not heard of until then.
        draining: Whether it was asked to finish what runs and to start nothing, or does so by itself.
        claim: How much it claims of what schedulers share, in their own form; None before it did.
    """

    owner: str
    started_at: dt.datetime
    expires_at: dt.datetime
    draining: bool
    claim: Json | None = None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened, as it is kept.

    Args:
        id: Grows; not without gaps.
        kind: What happened, such as `refreshed`.
        fields: What it is about.
    """

    id: int
    at: dt.datetime
    kind: str
    fields: Json
