"""Builds the publication of a finished refresh from its plan and outcome. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog import Definition, FrontierMove, HistoryEntry, Lease, NewVersion, Publication, Swap, Version
from headrace.catalog import Outcome as Ended
from headrace.cost.mode_choice import Choice
from headrace.definitions.details import to_json
from headrace.errors import HeadraceError, UserError
from headrace.ivm.program import DeltaProgram
from headrace.lake.metadata import TableMeta
from headrace.names import TableName
from headrace.physical.facts import Facts
from headrace.refresh.cut.cut import Head
from headrace.refresh.fuses.fuse import CHANGED
from headrace.refresh.run_context import Outcome
from headrace.results.refresh_results import Mode, RefreshResult
from headrace.statistics.calibration import MODEL, PACES, RECOMPUTED, SHARED, remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A refresh whose stages have run.

    Args:
        facts: What it was planned from.
        choice: How it ran.
        outcome: What it did.
        generation: Generation of the definition that was computed.
        expected: `lake` metadata file of every stored table when it began; None for a new one.
        definition: A definition that is published with it.
        started: When it began.
        ended: When its stages had run.
        gone: Stored tables of a former definition that are taken away with it.
        session: How warm the session was before (`SessionStatistics.warmth`).
        seconds: How long it took, publishing not included.
        changed: Rows that changed in the sources, by source.
        skipped: How many of them were skipped: the frontier moves, the contents stay.
        program: How the change was followed; None where it was not.
        remade: Whether the state is a new table, with columns of its own.
    """

    facts: Facts
    choice: Choice
    outcome: Outcome
    generation: int
    expected: Mapping[TableName, str | None]
    definition: Definition | None
    started: dt.datetime
    ended: dt.datetime
    gone: tuple[TableName, ...] = ()
    session: int = 0
    seconds: float = 0.0
    changed: Mapping[TableName, int] = field(default_factory=dict)
    skipped: int = 0
    program: DeltaProgram | None = None
    remade: bool = False

    @property
    def moved(self) -> bool:
        """Return whether the contents changed; equal rows make no new version."""
        if self.facts.name not in self.outcome.written:
            return False
        changed = bool(self.outcome.inserted + self.outcome.deleted)
        unknown = self.choice.mode is not Mode.DIFFERENTIAL and not self.outcome.compared
        return self.facts.first_load or self.remade or unknown or changed

    @property
    def published(self) -> Mapping[TableName, TableMeta]:
        """Return the stored tables whose new contents become visible."""
        return {t: m for t, m in self.outcome.written.items() if self.moved or t != self.facts.name}

    @property
    def companion_behind(self) -> bool | None:
        """Return whether the companion was left behind; None where it follows or is none."""
        if self.facts.companion is None or self.choice.mode is not Mode.FULL:
            return None
        return self.facts.companion not in self.outcome.written

    @property
    def rows_after(self) -> int | None:
        """Return rows in the state, if known."""
        meta = self.published.get(self.facts.name)
        if meta is not None and meta.row_count is not None:
            return meta.row_count
        if self.facts.state_rows is None or self.choice.mode is Mode.FULL:
            return None if self.moved else self.facts.state_rows
        return self.facts.state_rows + self.outcome.inserted - self.outcome.deleted

    @property
    def estimate(self) -> float | None:
        """Return the estimated seconds of the mode that ran."""
        full = self.choice.mode is Mode.FULL
        return self.choice.full_seconds if full else self.choice.differential_seconds


def _publication_of(done: Finished) -> Publication:
    """Return the publication that makes a refresh visible; it has no leases."""
    facts = done.facts
    foreign = facts.forced or done.definition is not None
    meta = done.published.get(facts.name)
    versions: tuple[NewVersion, ...] = ()
    if meta is not None:
        versions = (NewVersion(facts.name, facts.next_version, meta.current_snapshot_id, done.rows_after, meta.uuid),)
    return Publication(
        swaps=tuple(
            Swap(table, done.expected.get(table), staged=m.metadata_location, overwrite_foreign=foreign)
            for table, m in done.published.items()
        ),
        versions=versions,
        frontiers=(
            FrontierMove(
                facts.name,
                facts.frontier,
                done.generation,
                done.skipped,
                companion_behind=done.companion_behind,
                details=None if facts.renewed is None else to_json(facts.renewed),
            ),
        ),
        history=(entry_of(done),),
        definitions=(done.definition,) if done.definition else (),
        deletes=done.gone,
    )


def published_together(
    done: Sequence[Finished], leases: tuple[Lease, ...], group: tuple[TableName, ...] = ()
) -> Publication:
    """Return the publication that makes several refreshes visible at once.

    Args:
        done: The refreshes; what reads another of them comes after it.
        leases: Leases on all the tables.
        group: All members of the group whose epoch is counted; () for a table that is in none.
    """
    each = [_publication_of(one) for one in done]
    return Publication(
        swaps=tuple(x for p in each for x in p.swaps),
        versions=tuple(x for p in each for x in p.versions),
        frontiers=tuple(x for p in each for x in p.frontiers),
        history=tuple(x for p in each for x in p.history),
        leases=leases,
        definitions=tuple(x for p in each for x in p.definitions),
        deletes=tuple(x for p in each for x in p.deletes),
        groups=(group,) if group else (),
    )


def along_with(first: Publication, refreshes: Publication) -> Publication:
    """Return a publication with refreshes of what reads its tables, as one.

    Args:
        first: The publication, by whose identity it is known afterwards.
        refreshes: The refreshes, with leases on all the tables.
    """
    return replace(
        first,
        swaps=first.swaps + refreshes.swaps,
        versions=first.versions + refreshes.versions,
        frontiers=first.frontiers + refreshes.frontiers,
        history=first.history + refreshes.history,
        leases=refreshes.leases,
        definitions=first.definitions + refreshes.definitions,
        deletes=first.deletes + refreshes.deletes,
        groups=first.groups + refreshes.groups,
    )


def staged_head(done: Finished) -> Head | None:
    """Return a table's staged head for readers published with it; None if unchanged."""
    meta = done.published.get(done.facts.name)
    if meta is None:
        return None
    version = Version(
        relation=done.facts.name,
        version=done.facts.next_version,
        snapshot_id=meta.current_snapshot_id,
        row_count=done.rows_after,
        committed_at=done.ended,
        publication_id=None,
        table_uuid=meta.uuid,
    )
    log = done.facts.log
    return Head(version, meta, staged=True, log=done.published.get(log) if log is not None else None)


def entry_of(done: Finished) -> HistoryEntry:
    """Return the refresh in the history."""
    return HistoryEntry(
        stream=done.facts.name,
        started_at=done.started,
        finished_at=done.ended,
        mode=done.choice.mode,
        reason=done.choice.reason.value if done.choice.reason else None,
        reason_detail=done.choice.detail,
        rows_inserted=done.outcome.inserted,
        rows_deleted=done.outcome.deleted,
        rows_after=done.rows_after,
        stages=dict(done.outcome.seconds),
        metrics=_metrics(done),
        frontier=done.facts.frontier,
    )


def rolled_back(done: Finished, failed: TableName, error: HeadraceError) -> HistoryEntry:
    """Return a refresh in the history that came to nothing as its group failed.

    Args:
        done: The refresh.
        failed: The member of its group that failed.
        error: What went wrong with that.
    """
    return unpublished(done, f"It was not published, as {failed} of its group failed. [{error.code}] {error.message}")


def unpublished(done: Finished, reason: str) -> HistoryEntry:
    """Return a refresh in the history that came to nothing.

    Args:
        done: The refresh.
        reason: Why, as a sentence.
    """
    why = UserError("ROLLED_BACK", reason)
    return replace(
        entry_of(done),
        outcome=Ended.FAILED,
        metrics={},
        frontier=None,
        rows_after=None,
        error_code=why.code,
        error_message=why.message,
    )


def _metrics(done: Finished) -> dict[str, object]:
    metrics: dict[str, object] = {
        "jobs": done.outcome.jobs,
        "estimate": done.estimate,
        "model": MODEL,
        "session": done.session,
    }
    if known := remembered(done.facts.calibration):
        metrics[PACES] = known
    if done.facts.recomputed:
        metrics[RECOMPUTED] = done.facts.recomputed
    if done.outcome.shared:
        metrics[SHARED] = round(done.outcome.shared, 4)
    if done.skipped:
        metrics["skipped"] = done.skipped
    elif done.changed:
        metrics[CHANGED] = {str(name): rows for name, rows in done.changed.items()}
    return metrics


def result_of(done: Finished, seconds: float) -> RefreshResult:
    """Return the refresh as its caller sees it.

    Args:
        done: The refresh.
        seconds: Its wall time, publishing included.
    """
    return RefreshResult(
        name=str(done.facts.name),
        mode=done.choice.mode,
        reason=done.choice.reason,
        detail=done.choice.detail,
        rows_inserted=done.outcome.inserted,
        rows_deleted=done.outcome.deleted,
        seconds=seconds,
        frontier=done.facts.frontier.as_dict(),
        stages=dict(done.outcome.seconds),
        jobs=done.outcome.jobs,
    )
