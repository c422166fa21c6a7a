"""Results of refreshing, verifying and explaining: frozen data, printable and JSON-able."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headrace.catalog.records import RanAs as Mode
from headrace.catalog.records import RefreshMode, Status
from headrace.reasons import FullReason

__all__ = [
    "Explanation",
    "FunctionInfo",
    "HistoryRow",
    "Mode",
    "RefreshMode",
    "RefreshResult",
    "RefusalInfo",
    "Status",
    "StepInfo",
    "StrategyInfo",
    "StreamTableInfo",
    "TableSettings",
    "Validation",
    "VerifyResult",
]


_PLAIN = frozenset((bool, int, str))


class Record:
    """Gives result dataclasses a JSON form."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field by field."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return plain_float(value)
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (bool, int, str)) else str(value)


def plain_float(value: float) -> float | str:
    """Return a number that JSON has; for others, which it has not, a text as Spark writes them."""
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


@dataclass(frozen=True, slots=True)
class RefreshResult(Record):
    """One refresh.

    Args:
        name: The stream table, as users write it.
        mode: How the frontier was moved.
        reason: Why it was FULL, else None.
        detail: The reason in words, with what it was about.
        rows_inserted: Rows that appeared.
        rows_deleted: Rows that disappeared.
        seconds: Wall time.
        frontier: Version of each source the table now reflects.
        stages: Seconds per stage, in order.
        jobs: Spark jobs run, where the session can tell.
    """

    name: str
    mode: Mode
    reason: FullReason | None
    detail: str | None
    rows_inserted: int
    rows_deleted: int
    seconds: float
    frontier: Mapping[str, int]
    stages: Mapping[str, float] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class VerifyResult(Record):
    """A stream table compared with its query at its frontier.

    Args:
        name: The stream table.
        ok: True when both are the same multiset, and the declared keys that it rests on hold.
        rows: Rows the query returns.
        missing: Rows of the query that the table lacks, copies counted.
        unexpected: Rows of the table that the query does not return, copies counted.
        rounded: Pairs of rows that differ only in the last digits of floating-point sums; not counted as wrong.
        seconds: Wall time.
        samples: Up to five differing rows, each with `weight` +n (missing) or -n (unexpected).
        skipped_rows: Changed rows of its sources that somebody had skipped, for which it may differ; 0 for none.
        skipped_since: When the first of them were.
        broken_keys: Keys of sources that its plan rests on and that do not hold, in words.
    """

    name: str
    ok: bool
    rows: int
    missing: int
    unexpected: int
    rounded: int
    seconds: float
    samples: tuple[Mapping[str, Any], ...] = ()
    skipped_rows: int = 0
    skipped_since: dt.datetime | None = None
    broken_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusalInfo(Record):
    """A construct for which a query is not maintained incrementally.

    Args:
        code: The `FullReason`.
        construct: What it is, such as `LEFT JOIN`.
        message: One sentence.
        line: Line in the query, from 1, if known.
        column: Column in the line, from 1, if known.
        hint: What to write instead, if anything.
    """

    code: FullReason
    construct: str
    message: str
    line: int | None
    column: int | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class StreamTableInfo(Record):
    """One line of `status`.

    Args:
        name: The stream table.
        status: NEW (not loaded), ACTIVE, STOPPED, or DAMAGED (see `damage`).
        refresh_mode: What the user asked for.
        schedule: The schedule text, or None.
        incremental: Whether the query can be refreshed DIFFERENTIAL.
        refusals: If not, why.
        behind: Sources that moved since the last refresh.
        frontier: Version of each source the table reflects.
        version: The table's own newest version, or None before the first load.
        rows: Rows in the table, if known.
        consumers: Stream tables that read it.
        last_refresh: When the last refresh ended, or None.
        last_mode: Its mode.
        last_reason: Why it was FULL.
        last_seconds: Its wall time.
        last_error: Code and message of the last failure, if the last refresh failed.
        stopped_reason: Why it is STOPPED, with the remedy.
        effective_schedule: What decides when it is refreshed: its own schedule, or the project's default.
        lag: Seconds since the oldest change that it does not reflect was committed; 0 when it reflects all that was
            seen, None before its first load.
        target: The lag it is to keep, in seconds: its own, stretched by its tier, or the strictest of what reads it;
            None without one, as on change.
        held_up: Why schedules leave it alone, or for whom it waits; None when nothing holds it up.
        fuse: The change that its fuse keeps out, in words; None when it has not blown.
        skipped_rows: Changed rows of its sources that somebody had skipped; while there are any, it is known to differ
            from its query.
        skipped_since: When the first of them were.
        late_because: What holds it up while its lag is beyond the target (on change: its pause), though nobody
            stopped it.
        within_target: The share of the last day, 0 to 1, for which its lag was within the target; None without one.
        trails: By how many versions it stays behind what it reads, by source, because newer ones do not agree; where
            `diamond_consistency` is `aligned`.
        gated: Sources that it reads, directly or through others, and that are held back by a gate.
        properties: What was set for it, by key; `show_create` prints them, too.
        pool: The pool whose quota it counts against; None for none.
        group: The group that it is refreshed and published with, as `diamond_groups` calls it; None for none.
        policy: When that group is due: `fastest` or `slowest`; None without one.
        epoch: How often that group was published; None without one.
        damage: What another program did to the tables it is stored in; None when they are as Headrace published them.
            `repair` undoes it.
        eventual: Whether the REST catalog shows its publications table by table, so that what is read from several
            stream tables at one moment may be of different ones.
    """

    name: str
    status: Status
    refresh_mode: RefreshMode
    schedule: str | None
    incremental: bool
    refusals: tuple[RefusalInfo, ...]
    behind: tuple[str, ...]
    frontier: Mapping[str, int]
    version: int | None
    rows: int | None
    consumers: tuple[str, ...]
    last_refresh: dt.datetime | None
    last_mode: Mode | None
    last_reason: FullReason | None
    last_seconds: float | None
    last_error: str | None
    stopped_reason: str | None
    effective_schedule: str | None = None
    lag: float | None = None
    target: int | None = None
    held_up: str | None = None
    fuse: str | None = None
    skipped_rows: int = 0
    skipped_since: dt.datetime | None = None
    gated: tuple[str, ...] = ()
    trails: Mapping[str, int] = field(default_factory=dict)
    late_because: str | None = None
    within_target: float | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    pool: str | None = None
    group: str | None = None
    policy: str | None = None
    epoch: int | None = None
    damage: str | None = None
    eventual: bool = False

    @property
    def is_late(self) -> bool:
        """Return whether it is beyond its target lag."""
        return self.lag is not None and self.target is not None and self.lag > self.target


@dataclass(frozen=True, slots=True)
class HistoryRow(Record):
    """One refresh in `history`; newest first.

    Args:
        name: The stream table.
        started_at: When it began.
        seconds: Wall time.
        mode: How the frontier was moved.
        reason: Why it was FULL.
        detail: The reason in words.
        ok: False when it failed; nothing was published then.
        rows_inserted: Rows that appeared.
        rows_deleted: Rows that disappeared.
        rows_after: Rows in the table afterwards, if known.
        stages: Seconds per stage.
        frontier: Frontier reached.
        error_code: Code of the failure.
        error_message: Its message.
        publication: Number of the publication, which `hr.at()` takes.
        jobs: Spark jobs run, where the session can tell.
        epoch: Which publication of its group it was; None for a table that was refreshed alone.
    """

    name: str
    started_at: dt.datetime
    seconds: float
    mode: Mode
    reason: FullReason | None
    detail: str | None
    ok: bool
    rows_inserted: int
    rows_deleted: int
    rows_after: int | None
    stages: Mapping[str, float]
    frontier: Mapping[str, int]
    error_code: str | None
    error_message: str | None
    publication: int | None
    jobs: int | None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class PassInfo(Record):
    """A run of an optimiser pass.

    Args:
        name: The pass, as `[optimizer] disable` names it.
        phase: How often it runs: `logical` (once per definition), `per change` or `per session`.
        fired: Whether it changed anything.
        change: What it changed, in a line; of one that did not fire, why.
        seconds_before: Estimated seconds of what it was given, by the cost model: of recomputing for the query, of
            following the change for a program; None where the model says nothing.
        seconds_after: The same of what it gave.
        claim: The algebraic law it rests on.
        assumes: What it rests on beyond that; empty for nothing.
        cost_based: Whether sizes decide about it; another one applies wherever it can.
    """

    name: str
    phase: str
    fired: bool
    change: str
    seconds_before: float | None = None
    seconds_after: float | None = None
    claim: str = ""
    assumes: str = ""
    cost_based: bool = False


@dataclass(frozen=True, slots=True)
class StepInfo(Record):
    """A step of a refresh, as `explain --analyze` shows it.

    Args:
        number: Its place, from 1.
        title: What it is.
        operators: What it computed, in the words of the query; inputs are indented.
        estimated_rows: Rows that the cost model expected; None where it says nothing.
        rows: Rows that it had, or wrote; None where nobody counted them, as of a subquery.
        seconds: Time it took by itself.
        kept: How its rows reached its readers: MATERIALIZE, LOCAL, INLINE, IF_NONEMPTY or STORED.
        skipped: Why it was not computed; None where it was.
        notes: What was decided while it ran.
    """

    number: int
    title: str
    operators: tuple[str, ...]
    estimated_rows: int | None
    rows: int | None
    seconds: float
    kept: str
    skipped: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSettings(Record):
    """The settings of a stream table, and what follows from them.

    Args:
        schedule: Its own schedule; None for `DOWNSTREAM`.
        refresh_mode: What the user asked for.
        properties: What was set, by key.
        pool: The pool whose quota it counts against; None for none.
        group: The group that it is refreshed and published with; None for none.
        members: The stream tables of that group, in the order they are refreshed.
        policy: When the group is due: `fastest` or `slowest`; None without one.
    """

    schedule: str | None
    refresh_mode: RefreshMode
    properties: Mapping[str, str]
    pool: str | None
    group: str | None
    members: tuple[str, ...]
    policy: str | None

    def __str__(self) -> str:
        """Return them in lines, as `explain` prints them."""
        lines = [f"schedule {self.schedule or 'DOWNSTREAM'}, refresh mode {self.refresh_mode}"]
        lines += [f"{key} = {text}" for key, text in self.properties.items()]
        if self.group is not None:
            lines.append(f"group {self.group} ({', '.join(self.members)}), policy {self.policy}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """The way a table or query is refreshed; `explain` prints its `sections` in order.

    Args:
        name: The stream table, or None for a bare query.
        mode: The mode the next refresh would take, or the one that was analysed.
        reason: Why FULL.
        refusals: What keeps the query from being DIFFERENTIAL.
        sections: Pairs (title, text): algebra, delta before and after the rewrites, choice, stages and SQL of both
            modes; of an analysis, its summary and its steps.
        passes: The optimiser's passes, where they were asked for.
        steps: What each step of a refresh did, where that was analysed.
        settings: What is set for the stream table; None for a bare query.
    """

    name: str | None
    mode: Mode
    reason: FullReason | None
    refusals: tuple[RefusalInfo, ...]
    sections: tuple[tuple[str, str], ...]
    passes: tuple[PassInfo, ...] = ()
    steps: tuple[StepInfo, ...] = ()
    settings: TableSettings | None = None


@dataclass(frozen=True, slots=True)
class FunctionInfo(Record):
    """A Python function of the project.

    Args:
        name: Its name in SQL.
        returns: The type it returns; None when it is called and not declared any more.
        deterministic: Whether equal arguments always give equal results; None likewise.
        fingerprint: What changes with its body; None likewise.
        called_by: The stream tables that call it.
        to_recompute: Those among them that were computed with another body, and are recomputed at their next refresh.
    """

    name: str
    returns: str | None
    deterministic: bool | None
    fingerprint: str | None
    called_by: tuple[str, ...]
    to_recompute: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StrategyInfo(Record):
    """The way in which one construct of a query is maintained.

    Args:
        construct: Its name in SQL words, such as `LEFT JOIN`.
        subject: What it is about: a table, a condition, a call.
        how: What a refresh does for it.
    """

    construct: str
    subject: str
    how: str


@dataclass(frozen=True, slots=True)
class Validation(Record):
    """The mode a query would have as a stream table, with obstacles and strategies.

    Args:
        query: The query as written; lines and columns of refusals count in it.
        mode: DIFFERENTIAL if it can be maintained, else FULL.
        reason: Why FULL.
        refusals: What keeps it from being DIFFERENTIAL.
        strategies: How its constructs are maintained, from the result down to the sources; empty when it is FULL.
        columns: Pairs (name, Spark type) of the result.
        sources: The tables it reads.
    """

    query: str
    mode: Mode
    reason: FullReason | None
    refusals: tuple[RefusalInfo, ...]
    strategies: tuple[StrategyInfo, ...]
    columns: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
