"""Results of landing, listing and checking sources: frozen data, printable, JSON-able."""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass

from headrace.catalog import SourceStatus
from headrace.catalog.sources.source_health import SourceFailure
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class LandingResult(Record):
    """The result of landing a source.

    Args:
        source: The source.
        transactions: Transactions of the database that were landed.
        rows: Changes of rows they had, or rows of new snapshots.
        inserted: Rows that appeared in mirrors.
        deleted: Rows that disappeared.
        mirrors: Mirrors that changed.
        caught_up: Whether nothing more was committed when reading began.
        seconds: Wall time.
    """

    source: str
    transactions: int
    rows: int
    inserted: int
    deleted: int
    mirrors: tuple[str, ...]
    caught_up: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class SourceInfo(Record):
    """One line of `headrace source list`.

    Args:
        name: The source.
        kind: What kind of database.
        url: Where it is, without a password.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        mirrors: Its mirrors.
        gone: Mirrors whose table was dropped.
        position: What is landed, as the database writes positions; None before the first landing.
        landed_at: When something was last landed.
        stopped_reason: Why it is STOPPED.
    """

    name: str
    kind: str
    url: str
    status: SourceStatus
    mirrors: tuple[str, ...]
    gone: tuple[str, ...]
    position: str | None
    landed_at: dt.datetime | None
    stopped_reason: str | None


@dataclass(frozen=True, slots=True)
class LastError(Record):
    """The last failure of landing a source.

    Args:
        code: Error code.
        message: What happened.
        detail: Why, where that is known.
        remedy: What to do about it.
        retryable: Whether it may pass by itself.
        since: When it first happened; it has happened at every landing since.
        at: When it last happened.
        over: When a landing succeeded after it; None while none has.
    """

    code: str
    message: str
    detail: str | None
    remedy: str | None
    retryable: bool
    since: dt.datetime
    at: dt.datetime
    over: dt.datetime | None

    @classmethod
    def of(cls, failure: SourceFailure | None) -> LastError | None:
        """As the catalog remembers it."""
        return None if failure is None else cls(**dataclasses.asdict(failure))


@dataclass(frozen=True, slots=True)
class SourceHealth(Record):
    """A source's health at its server, as in `headrace source status`.

    Args:
        name: The source.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        capture: `wal`, `trigger` or `auto`.
        lag_seconds: How long ago the oldest transaction that waits to be landed was committed; 0 when none waits, None
            where that is not known.
        lag_seconds_at_most: That is how long at most: under triggers, unless the server has `track_commit_timestamp`.
        lag_bytes: Write-ahead log written since what is landed; None under triggers.
        lag_transactions: Transactions with changes of captured tables that wait; None where they cannot be counted.
        lag_transactions_at_least: There are that many at least: counting was ended.
        waiting_rows: Captured rows that are not landed; None where the write-ahead log is read.
        slot: The replication slot and the publication; under triggers, the schema of the change tables.
        slot_status: `reserved`, `extended`, `unreserved` or `lost`; None when there is no slot.
        slot_invalidation: Why the server has invalidated the slot, where it says so (17 and newer).
        slot_active_by: Who reads the slot now, in words; None when nobody does.
        kept_bytes: Write-ahead log that the server keeps for the slot, or change tables; None where they are missing.
        safe_bytes: How much more until the slot may be lost; None without a limit.
        log_bytes_per_second: How fast the server writes its log, from earlier looks; None where there is none yet.
        runs_out_seconds: How long the slot lasts if nothing more is landed: until there is no room for the log at that
            rate, or it counts as idle; None without a limit, or where that is not known.
        idle_timeout_seconds: `idle_replication_slot_timeout` (18); None where there is none.
        idle_seconds: How long ago the slot was last read (17); None while it is, and where that is not known.
        spilled_bytes: What decoding large transactions has put on the server's disk since its statistics began; None
            where there is no slot.
        spool_bytes: Rows in the warehouse that are on their way into the mirrors.
        landed_at: When something was last landed.
        stopped_reason: Why it is STOPPED.
        last_error: The last failure of landing it, also one that is over.
    """

    name: str
    status: SourceStatus
    capture: str
    lag_seconds: float | None
    lag_seconds_at_most: bool
    lag_bytes: int | None
    lag_transactions: int | None
    lag_transactions_at_least: bool
    waiting_rows: int | None
    slot: str
    slot_status: str | None
    slot_invalidation: str | None
    slot_active_by: str | None
    kept_bytes: int | None
    safe_bytes: int | None
    log_bytes_per_second: float | None
    runs_out_seconds: float | None
    idle_timeout_seconds: float | None
    idle_seconds: float | None
    spilled_bytes: int | None
    spool_bytes: int
    landed_at: dt.datetime | None
    stopped_reason: str | None
    last_error: LastError | None


@dataclass(frozen=True, slots=True)
class SourceCheck(Record):
    """One thing that must be so before a source can be captured.

    Args:
        name: What it is about.
        ok: Whether it is as it must be.
        finding: How it is.
        remedy: What to run on the server, where something is wrong and a statement helps.
    """

    name: str
    ok: bool
    finding: str
    remedy: str | None
