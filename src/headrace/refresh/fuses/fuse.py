"""Fuses: limits on the size of a change beyond which somebody has to decide.

Pure. A change is measured by the rows that changed in the sources, which is known before anything is computed: from
snapshots' counters and change logs, at most (rows that a copy-on-write update carried over count until they are looked
at). It is too large above a ceiling, or above a multiple of the largest of the table's own recent changes; the largest,
not the usual one, because a table whose changes differ widely is no alarm, and because a change that somebody let
through once is thereby known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from headrace.catalog import HistoryEntry, Outcome, Version
from headrace.errors import EnvironmentFault, UserError
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.results.refresh_results import Record
from headrace.schedule.options import Options

if TYPE_CHECKING:
    from headrace.physical.facts import SourceFacts

ENOUGH = 5
"""Changes that must be known before a change is compared with them."""

FEW_ROWS = 1000
"""A change of so few rows is never compared with others: ten times next to nothing is nothing."""

CHANGED = "changed"
"""The metric under which a refresh's history keeps how many rows had changed, by source."""

BLOWN = "FUSE_BLOWN"


class Resolution(StrEnum):
    """The decision about a change that was too large."""

    APPLY = "apply"
    SKIP = "skip"
    REINITIALIZE = "reinitialize"


UNRESOLVED: Mapping[TableName, Resolution] = MappingProxyType({})
"""Nothing was decided: every change is judged."""


@dataclass(frozen=True, slots=True)
class Fuse:
    """Limits of a stream table's fuse.

    Args:
        ceiling: Changed rows; 0 for no limit.
        factor: A multiple of the largest recent change; 0 for no limit.
    """

    ceiling: int = 0
    factor: float = 0.0

    def of(self, options: Options) -> Fuse:
        """Return the fuse of a table; what its options do not say is as here."""
        ceiling = self.ceiling if options.fuse_ceiling is None else options.fuse_ceiling
        return Fuse(ceiling, self.factor if options.fuse_factor is None else options.fuse_factor)


@dataclass(frozen=True, slots=True)
class Evidence(Record):
    """Figures for which a fuse blew.

    Args:
        rows: Changed rows of the sources.
        limit: How many it allows.
        rule: The property that says so: `fuse_ceiling` or `fuse_factor`.
        sources: Changed rows by source, the most first.
        usual: The median of the recent changes; None where there were none.
        largest: The largest of them.
    """

    rows: int
    limit: int
    rule: str
    sources: Mapping[str, int]
    usual: int | None = None
    largest: int | None = None

    @property
    def sentence(self) -> str:
        """Return the evidence in words."""
        by_source = ", ".join(f"{rows:,} of {name}" for name, rows in self.sources.items())
        usual = "" if self.usual is None else f"; usually {self.usual:,}, at most {self.largest:,} lately"
        return (
            f"{self.rows:,} rows changed in its sources ({by_source}), more than {self.limit:,} ({self.rule}){usual}."
        )


def evidence_from(document: Mapping[str, object]) -> Evidence:
    """Return the evidence as the catalog keeps it (`Evidence.as_dict`)."""
    return Evidence(**document)  # type: ignore[arg-type]


def changed_rows(
    sources: Iterable[SourceFacts], frontier: Frontier, before: Mapping[TableName, Version]
) -> dict[TableName, int]:
    """Return how many rows changed in each source that has moved, at most; the most first.

    Where a change cannot be read, as of a table that was dropped and created again, it is known to be at least as large
    as the difference in rows.

    Args:
        sources: The sources at the cut.
        frontier: The frontier that the table leaves.
        before: The sources' versions there.
    """
    found = {}
    for source in sources:
        if source.name not in frontier or frontier[source.name] == source.version:
            continue
        if rows := source.change_rows or _difference(source, before.get(source.name)):
            found[source.name] = rows
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _difference(source: SourceFacts, before: Version | None) -> int:
    if source.obstacle is None or source.rows is None or before is None or before.row_count is None:
        return 0
    return abs(source.rows - before.row_count)


def judge(fuse: Fuse, changed: Mapping[TableName, int], history: Iterable[HistoryEntry]) -> Evidence | None:
    """Return the evidence against a change that is too large, else None.

    Args:
        fuse: What is allowed.
        changed: Changed rows by source.
        history: Recent refreshes of the table.
    """
    rows, recent = sum(changed.values()), recent_changes(history)
    rule, limit = _limit(fuse, recent)
    if limit is None or rows <= limit:
        return None
    from statistics import median  # brings fractions and decimals, which no look at the catalog needs

    return Evidence(
        rows=rows,
        limit=limit,
        rule=rule,
        sources={str(name): count for name, count in changed.items()},
        usual=round(median(recent)) if recent else None,
        largest=max(recent, default=None),
    )


def recent_changes(history: Iterable[HistoryEntry]) -> list[int]:
    """Return the sizes of the changes that were applied lately."""
    applied = (e.metrics.get(CHANGED) for e in history if e.outcome is Outcome.OK)
    return [rows for changed in applied if changed and (rows := sum(changed.values()))]


def _limit(fuse: Fuse, recent: list[int]) -> tuple[str, int | None]:
    """Return the strictest limit, and the property that sets it."""
    limits = {"fuse_ceiling": fuse.ceiling} if fuse.ceiling else {}
    if fuse.factor and len(recent) >= ENOUGH:
        limits["fuse_factor"] = max(FEW_ROWS, int(fuse.factor * max(recent)))
    rule = min(limits, key=lambda name: limits[name], default="")
    return rule, limits.get(rule)


def blown(name: TableName, evidence: Evidence) -> EnvironmentFault:
    """Return the error for a refresh that the fuse stopped."""
    return EnvironmentFault(
        BLOWN,
        f"The fuse of {name} blew: a change is larger than it may be; nothing was applied.",
        detail=evidence.sentence,
        hint=f"Look at the sources, then `headrace fuse {name} apply` (or skip, or reinitialize); "
        "once the sources are repaired, a refresh goes on by itself.",
    )


def not_skippable(name: TableName, reason: FullReason) -> UserError:
    """Return the error for skipping a change of a table that is recomputed anyway."""
    return UserError(
        "FUSE_NOT_SKIPPABLE",
        f"What changed in the sources of {name} cannot be skipped: it must be recomputed, as {reason.sentence}.",
        hint=f"Repair the sources and refresh, or `headrace fuse {name} apply`.",
    )
