"""Exchanges two generations of stream tables in one publication.

The public relation keeps its name, id, version sequence, stored table, change log, and whoever reads it; it receives
the other generation's definition, companion, frontier and rows. The other one receives what the public one had. So the
same exchange promotes, and takes a promotion back.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.algebra.schema import Column
from headrace.catalog import (
    Catalog,
    Definition,
    FrontierMove,
    Green,
    HistoryEntry,
    Lease,
    NewVersion,
    Publication,
    PublicationRecord,
    RanAs,
    Rename,
    Stop,
    StreamTable,
    Swap,
)
from headrace.clock import Clock
from headrace.definitions.details import Details, from_json, in_generation, to_json
from headrace.deploy.column_changes import alterations
from headrace.events import Events
from headrace.frontier import Frontier
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import log_columns
from headrace.names import STAGING, TableName
from headrace.ports import Runner, Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import metadata
from headrace.refresh.execution import Run
from headrace.refresh.gather_facts import TableState
from headrace.refresh.publishing import make_visible
from headrace.refresh.refresher import Refresher
from headrace.refresh.run_context import Outcome
from headrace.refresh.staging_tables import staged
from headrace.sources.lakehouse.changes_sql import rows_sql


@dataclass(frozen=True, slots=True)
class Pair:
    """Two generations of a stream table.

    Args:
        green: What the catalog has of them.
        public: The public one.
        other: The one beside it.
        other_name: What that is called afterwards.
    """

    green: Green
    public: TableState
    other: TableState
    other_name: TableName


@dataclass(frozen=True, slots=True)
class Half:
    """One side of an exchanged pair.

    Args:
        state: What the catalog says of the relation.
        name: What it is called afterwards.
        source: The generation whose definition and rows it receives.
        details: Its definition then.
        outcome: What was written for it.
        altered: Whether its columns are others than before.
    """

    state: TableState
    name: TableName
    source: TableState
    details: Details
    outcome: Outcome
    altered: bool

    @property
    def version(self) -> int:
        """Return its version afterwards."""
        before = -1 if self.state.newest is None else self.state.newest.version
        return before + self.moved

    @property
    def moved(self) -> bool:
        """Return whether its rows or columns change; equal rows make no new version."""
        return self.altered or bool(self.outcome.inserted + self.outcome.deleted)


class Exchange:
    """Exchanges generations under leases of the caller.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        refresher: What refreshes share in this process.
        events: Told of each stage.
        clock: Tells the time.
    """

    def __init__(self, catalog: Catalog, session: Session, refresher: Refresher, events: Events, clock: Clock) -> None:
        self.catalog = catalog
        self.session = session
        self.refresher = refresher
        self.events = events
        self.clock = clock

    def write(self, pairs: Sequence[Pair], deployment: str) -> list[tuple[Half, Half]]:
        """Write what each generation receives into `staging`; readers see nothing of it.

        Args:
            pairs: The stream tables, producers first.
            deployment: The deployment.

        Returns:
            By pair, the public half and the other one.
        """
        redirects = {p.public.table.name: p.other_name for p in pairs}
        halves = []
        for pair in pairs:
            new = in_generation(from_json(pair.other.table.details), "", {})
            old = in_generation(from_json(pair.public.table.details), deployment, redirects)
            public = self._half(pair.public, pair.public.table.name, pair.other, new)
            other = self._half(pair.other, pair.other_name, pair.public, old)
            halves.append((public, other))
        return halves

    def publish(
        self,
        halves: Sequence[tuple[Half, Half]],
        greens: Sequence[Green],
        leases: Callable[[], tuple[Lease, ...]],
        *,
        reason: FullReason,
        stops: tuple[Stop, ...] = (),
        why: str = "",
    ) -> tuple[PublicationRecord, float]:
        """Make an exchange visible.

        Args:
            halves: What `write` has written.
            greens: Second generations, as they are afterwards.
            leases: Leases on all of them.
            reason: `PROMOTED` or `ROLLED_BACK`.
            stops: Readers outside that cannot go on.
            why: What led to it, for the history.

        Returns:
            The publication, and how many seconds its transaction took.
        """
        publication = self._publication(halves, greens, leases(), reason, stops, why)
        begin = time.perf_counter()
        make_visible(self.catalog, publication)
        seconds = time.perf_counter() - begin
        record = self.catalog.publication(publication.uuid)
        assert record is not None  # make_visible would have raised
        return record, seconds

    def put_back(self, pairs: Sequence[Pair], leases: tuple[Lease, ...]) -> None:
        """Put back what was written for an exchange that does not come about."""
        tables = [t for p in pairs for state in (p.public, p.other) for t in state.table.stored]
        self.catalog.reset_staging(tables, held=leases)

    # ---- contents

    def _half(self, state: TableState, name: TableName, source: TableState, details: Details) -> Half:
        runner = self.session.runner().under(details.semantics)
        altered = self._with_columns(runner, state.table, from_json(state.table.details).output, details.output)
        meta = altered.get(state.table.name) or metadata(state.locations[state.table.name])
        facts = gather_facts.of_contents(state, details, _rows(state, meta), uuid.uuid4().hex[:8])
        refresher = self.refresher
        run = Run(
            facts, runner, self.catalog, self.events, self.session.catalogs, refresher.changes, refresher.statistics
        )
        run.outcome.written.update(altered)
        try:
            run.taken_over(_rows(source, metadata(source.locations[source.table.name])))
        finally:
            run.close()
        return Half(state, name, source, details, run.outcome, bool(altered))

    def _with_columns(
        self, runner: Runner, table: StreamTable, old: tuple[Column, ...], new: tuple[Column, ...]
    ) -> dict[TableName, TableMeta]:
        """Give state and change log other columns, in `staging`; return what was altered."""
        wanted = [(table.name, old, new)]
        if table.log is not None:
            wanted.append((table.log, log_columns(old), log_columns(new)))
        altered = {}
        for stored, before, after in wanted:
            statements = alterations(stored.within(STAGING), before, after)
            for sql in statements:
                runner.run(sql)
            if statements:
                altered[stored] = staged(self.catalog, stored)
        return altered

    # ---- publication

    def _publication(
        self,
        halves: Sequence[tuple[Half, Half]],
        greens: Sequence[Green],
        leases: tuple[Lease, ...],
        reason: FullReason,
        stops: tuple[Stop, ...],
        why: str,
    ) -> Publication:
        each = [half for pair in halves for half in pair]
        renames = tuple(Rename(h.state.table.name, h.name) for h in each if h.name != h.state.table.name)
        return Publication(
            swaps=tuple(swap for half in each for swap in _swaps(half)),
            versions=tuple(_version(half) for half in each if half.moved),
            frontiers=tuple(move for half in each if (move := _frontier_move(half, halves)) is not None),
            history=tuple(self._entry(half, halves, reason, why) for half in each),
            leases=leases,
            definitions=tuple(_definition(half) for half in each),
            renames=renames,
            relation_renames=renames,
            greens=tuple(greens),
            stops=stops,
        )

    def _entry(self, half: Half, halves: Sequence[tuple[Half, Half]], reason: FullReason, why: str) -> HistoryEntry:
        move, now = _frontier_move(half, halves), self.clock.now()
        meta = half.outcome.written.get(half.state.table.name)
        before = half.state.newest.row_count if half.state.newest else None
        return HistoryEntry(
            stream=half.name,
            started_at=now,
            finished_at=now,
            mode=RanAs.FULL,
            reason=reason.value,
            reason_detail=f"{reason.sentence}: {why}" if why else reason.sentence,
            rows_inserted=half.outcome.inserted,
            rows_deleted=half.outcome.deleted,
            rows_after=meta.row_count if meta is not None else before,
            stages=dict(half.outcome.seconds),
            frontier=None if move is None else move.frontier,
        )


def _rows(state: TableState, meta: TableMeta) -> str:
    """Return the table expression of a generation's published rows, with the columns of `meta`."""
    return rows_sql(state.table.name, meta, state.newest.snapshot_id if state.newest else None)


def _swaps(half: Half) -> Iterator[Swap]:
    for table, meta in half.outcome.written.items():
        name = half.name if table == half.state.table.name else table
        yield Swap(name, half.state.locations.get(table), staged=meta.metadata_location)


def _version(half: Half) -> NewVersion:
    meta = half.outcome.written[half.state.table.name]
    return NewVersion(half.name, half.version, meta.current_snapshot_id, meta.row_count, meta.uuid)


def _definition(half: Half) -> Definition:
    given = half.source.table
    return Definition(
        name=half.name,
        query=given.query,
        sources=tuple(use.name for use in half.details.sources),
        refresh_mode=given.refresh_mode,
        schedule=given.schedule,
        details=to_json(half.details),
        companion=given.companion,
        log=half.state.table.log,
        options=given.options,
    )


def _frontier_move(half: Half, halves: Sequence[tuple[Half, Half]]) -> FrontierMove | None:
    """Return the frontier that a generation receives, in terms of the relations it reads then.

    None where the other one has not read the newest version of a table that is exchanged along: no version of the
    relation read from then on has these rows, so that it is loaded anew by its next refresh.
    """
    receiving = next(side for side in zip(*halves, strict=True) if any(one is half for one in side))
    called = {h.source.table.name: h for h in receiving}
    moved: dict[TableName, int] = {}
    for source, version in half.source.frontier.items():
        along = called.get(source)
        if along is None:
            moved[source] = version
        elif along.source.newest is not None and along.source.newest.version == version:
            moved[along.name] = along.version
        else:
            return None
    given = half.source.table
    behind = given.companion_behind if given.companion is not None else None
    return FrontierMove(half.name, Frontier(moved), companion_behind=behind)
