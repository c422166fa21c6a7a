"""Results of blue-green verbs: frozen data, printable and JSON-able."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class Exchanged(Record):
    """A stream table whose generations were, or would be, exchanged.

    Args:
        name: The public stream table.
        other: Where the other generation is queried from then on; None where there is none.
        rows_inserted: Rows that appear in the public table; None for a dry run.
        rows_deleted: Rows that disappear from it.
        columns_added: Columns that it gains.
        columns_dropped: Columns that it loses.
        role: What a promotion does with it: `exchange`, `new` or `drop`.
    """

    name: str
    other: str | None
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    role: str = "exchange"


@dataclass(frozen=True, slots=True)
class BrokenReader(Record):
    """A column, or a whole table, that a stream table which remains reads and would miss.

    Args:
        reader: The stream table.
        source: What it reads.
        column: The column; None for the whole table.
        what: What becomes of it.
    """

    reader: str
    source: str
    column: str | None
    what: str

    @property
    def missed(self) -> str:
        """Return in words what it would miss."""
        return self.source if self.column is None else f"column {self.column} of {self.source}"


@dataclass(frozen=True, slots=True)
class LostKey(Record):
    """A key that is gone, and for want of which a stream table is recomputed once.

    Args:
        reader: The stream table.
        source: What it reads.
        columns: The key.
    """

    reader: str
    source: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PromotionResult(Record):
    """A promotion, or one that was taken back.

    Args:
        deployment: The deployment.
        tables: Its stream tables, producers first.
        publication: The publication that made it visible; None for a dry run.
        seconds: How long it took.
        publish_seconds: How much of that the catalog's transaction took.
        broken: Columns that readers outside miss; with `force` these readers are stopped.
        keep_until: How long it can be taken back.
        frontier: Versions of the root sources at which the generations were exchanged.
        dry_run: Whether nothing was done.
        followed: Stream tables outside that are published together with some of them, refreshed in the same
            publication.
        lost_keys: Keys that readers outside rest on and that are gone; these readers are recomputed once.
        blocked_by: Of a dry run, code and message of what a promotion without `force` is refused with.
    """

    deployment: str
    tables: tuple[Exchanged, ...]
    publication: int | None = None
    seconds: float = 0.0
    publish_seconds: float = 0.0
    broken: tuple[BrokenReader, ...] = ()
    keep_until: dt.datetime | None = None
    frontier: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False
    followed: tuple[str, ...] = ()
    lost_keys: tuple[LostKey, ...] = ()
    blocked_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadProgress(Record):
    """The progress of the first load of a second generation.

    Args:
        stage: The stage that runs; None where none does.
        stages: Stages that have ended, with the seconds that each took.
        seconds: Since when it has been loaded, or for how long it was.
        rows_written: Rows written so far, which nobody sees yet.
        rows_public: Rows of the public table, for comparison.
    """

    stage: str | None
    stages: Mapping[str, float]
    seconds: float
    rows_written: int | None
    rows_public: int | None


@dataclass(frozen=True, slots=True)
class GreenInfo(Record):
    """A stream table of a deployment.

    Args:
        name: The public stream table.
        green: Where its second generation is queried.
        deployment: The deployment.
        state: `loading`, `catching up`, `converged`, `blocked`, `failed`, `promoted`; `blocked` has caught up, and a
            promotion would be refused all the same.
        detail: Why, in words.
        converged: Whether every root source's version is at least the public table's.
        lag_versions: By how many versions it is behind, by root source.
        lag_rows: By how many changed rows at most, by root source; None where that is not known any more.
        lag_seconds: For how long it has been behind the public table.
        rows: Rows of the second generation.
        rows_public: Rows of the public table.
        changes: What differs in the definition.
        altered: What was altered of the public table since; it cannot be promoted then.
        held_by: Closed gates, a blown fuse, a pause, skipped changes.
        seconds: Time its last 200 refreshes took, those that failed included.
        bytes: Size of what it stores, as far as its metadata tell.
        keep_until: How long a promotion can be taken back.
        refreshes: How many of these succeeded.
        progress: How far its first load is; None once it is loaded, or before that begins.
        auto_promote: Conditions on which its deployment promotes itself; None where it does not.
        refused: Why that was refused when it was tried last.
        watched_until: Until when the promotion is watched; None where it is not.
        on_trouble: `rollback` or `tell`, when something goes wrong within that.
        role: What a promotion does with it: `exchange`, `new` or `drop`.
        blocked_by: Code and message of what a promotion of its deployment would be refused for on its account, or
            taking that back; being loaded and behind, which pass by themselves, left out.
    """

    name: str
    green: str
    deployment: str
    state: str
    detail: str | None
    converged: bool
    lag_versions: Mapping[str, int]
    lag_seconds: float | None
    rows: int | None
    rows_public: int | None
    changes: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    held_by: tuple[str, ...] = ()
    seconds: float = 0.0
    bytes: int | None = None
    keep_until: dt.datetime | None = None
    refreshes: int = 0
    progress: LoadProgress | None = None
    auto_promote: Mapping[str, str] | None = None
    refused: str | None = None
    watched_until: dt.datetime | None = None
    on_trouble: str | None = None
    role: str = "exchange"
    blocked_by: tuple[str, ...] = ()
    lag_rows: Mapping[str, int | None] = field(default_factory=dict)
