"""Results of writing, listing and verifying sinks: frozen data, printable, JSON-able."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from headrace.catalog import SinkStatus
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class SinkResult(Record):
    """The outcome of writing a sink.

    Args:
        sink: The sink.
        how: `load`, `change`, `difference` (only what differed), or `nothing`.
        version: The version of the stream table that the target has now.
        inserted: Rows that came.
        deleted: Rows that left; an update is one of each.
        rows: Rows of the target by what was written.
        seconds: Wall time since its transaction began.
        placement: Where the target's rows are: `local`, `reference`, `distributed by …`; None where nothing was to do.
    """

    sink: str
    how: str
    version: int
    inserted: int
    deleted: int
    rows: int
    seconds: float
    placement: str | None = None


@dataclass(frozen=True, slots=True)
class SinkInfo(Record):
    """One line of `headrace sink list`.

    Args:
        name: The sink.
        stream: The stream table.
        kind: What kind of database.
        url: Where it is, without a password.
        table: The table there.
        key: Columns that identify a row; none for a bag.
        schedule: When it is written; None: as soon as something is published.
        status: NEW, ACTIVE, PAUSED or STOPPED.
        version: The version of the stream table that the target has; None before the first load.
        newest: The stream table's newest version.
        behind_seconds: Seconds since the oldest version was published that the target has not; 0 when it has all.
        rows: Rows of the target by what was written.
        written_at: When something was last written.
        stopped_reason: Why it is STOPPED.
        failures: How many writes in a row failed.
        retry_at: When it is tried again, if the last one failed.
        last_error: Code and message of the last failure, while it lasts.
        remedy: What to do about it.
        waits_for: Another sink of its group that is held, so that none is written.
        placement: Where the target's rows are, as when it was last written: `local`, `reference`, `distributed by …`.
    """

    name: str
    stream: str
    kind: str
    url: str
    table: str
    key: tuple[str, ...]
    schedule: str | None
    status: SinkStatus
    version: int | None
    newest: int | None
    behind_seconds: float
    rows: int | None
    written_at: dt.datetime | None
    stopped_reason: str | None
    failures: int
    retry_at: dt.datetime | None
    last_error: str | None
    remedy: str | None
    waits_for: str | None
    placement: str | None


@dataclass(frozen=True, slots=True)
class SinkVerifyResult(Record):
    """The result of comparing a sink's target with its stream table.

    Args:
        sink: The sink.
        ok: Whether they are equal.
        version: The version that was compared: the sink's position.
        rows: Rows of the target.
        checksum: Sum of a hash of its rows.
        expected_rows: Rows of the stream table at that version.
        expected_checksum: The same of these.
        missing: Rows that the target should have and has not.
        unexpected: Rows that it has and should not.
        examples: Some of either.
    """

    sink: str
    ok: bool
    version: int
    rows: int
    checksum: str
    expected_rows: int
    expected_checksum: str
    missing: int
    unexpected: int
    examples: tuple[str, ...]
