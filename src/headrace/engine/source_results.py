"""What landing, listing and checking database sources return: plain frozen data, printable and JSON-able."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from headrace.catalog import SourceStatus
from headrace.engine.results import Record


@dataclass(frozen=True, slots=True)
class LandingResult(Record):
    """What landing a source did.

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
class SourceHealth(Record):
    """What `headrace source status` finds out at the server.

    Args:
        name: The source.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        capture: `wal`, `trigger` or `auto`.
        lag_bytes: Write-ahead log written since what is landed; None under triggers.
        waiting_rows: Captured rows that are not landed; None where the write-ahead log is read.
        slot: The replication slot and the publication; under triggers, the schema of the change tables.
        slot_status: `reserved`, `extended`, `unreserved` or `lost`; None when there is no slot.
        kept_bytes: Write-ahead log that the server keeps for the slot, or change tables; None where they are missing.
        safe_bytes: How much more until the slot may be lost; None without a limit.
        landed_at: When something was last landed.
        stopped_reason: Why it is STOPPED.
    """

    name: str
    status: SourceStatus
    capture: str
    lag_bytes: int | None
    waiting_rows: int | None
    slot: str
    slot_status: str | None
    kept_bytes: int | None
    safe_bytes: int | None
    landed_at: dt.datetime | None
    stopped_reason: str | None


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
