"""Exchanges two generations of stream tables in one publication.

The public relation keeps its name, id, version sequence, stored table, change log, and whoever reads it; it receives
the other generation's definition, companion, frontier and rows. The other one receives what the public one had. So the
same exchange promotes, and takes a promotion back. What is new gets its public name, and what is dropped another one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.algebra.schema import Column
from headrace.catalog import (
    Catalog,
    Definition,
    Green,
    HistoryEntry,
    Lease,
    NewVersion,
    Publication,
    PublicationRecord,
    RanAs,
    Rename,
    Status,
    Stop,
    StreamTable,
    Swap,
)
from headrace.clock import Clock
from headrace.definitions.details import Details, from_json, in_generation, to_json
from headrace.deploy.exchanging.column_changes import alterations
from headrace.deploy.exchanging.halves import Half, Halves, Move, Pair, frontier_move
from headrace.events import Events
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import log_columns
from headrace.names import STAGING, TableName
from headrace.ports import Runner, Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import metadata
from headrace.refresh.execution import Run
from headrace.refresh.gather_facts import TableState
from headrace.refresh.groups.group_refresh import GroupRefresh
from headrace.refresh.held_leases import Held
from headrace.refresh.refresher import Refresher
from headrace.refresh.run_context import Outcome
from headrace.refresh.staging_tables import staged
from headrace.sources.lakehouse.changes_sql import rows_sql


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

    def write(self, pairs: Sequence[Pair], moves: Sequence[Move], deployment: str) -> Halves:
        """Write what each generation receives into `staging`; readers see nothing of it.

        Args:
            pairs: The stream tables, producers first.
            moves: What becomes public, or is public no longer; nothing is written for it.
            deployment: The deployment.
        """
        redirects = {p.public.table.name: p.other_name for p in pairs}
        redirects |= {m.green.original: m.name for m in moves if not m.arrives}
        halves = []
        for pair in pairs:
            new = in_generation(from_json(pair.other.table.details), "", {})
            old = in_generation(from_json(pair.public.table.details), deployment, redirects)
            public = self._half(pair.public, pair.public.table.name, pair.other, new)
            other = self._half(pair.other, pair.other_name, pair.public, old)
            halves.append((public, other))
        arriving = tuple(_moved(m, "", {}) for m in moves if m.arrives)
        leaving = tuple(_moved(m, deployment, redirects) for m in moves if not m.arrives)
        return Halves(tuple(halves), arriving, leaving)

    def publish(
        self,
        halves: Halves,
        greens: Sequence[Green],
        leases: Held,
        *,
        reason: FullReason,
        stops: tuple[Stop, ...] = (),
        why: str = "",
        following: GroupRefresh | None = None,
        groups: tuple[tuple[TableName, ...], ...] = (),
        pauses: tuple[TableName, ...] = (),
        unpauses: tuple[TableName, ...] = (),
    ) -> tuple[PublicationRecord, float]:
        """Make an exchange visible.

        Args:
            halves: What `write` has written.
            greens: Members of the deployment, as they are afterwards.
            leases: Leases on all of them.
            reason: `PROMOTED` or `ROLLED_BACK`.
            stops: Readers outside that cannot go on.
            why: What led to it, for the history.
            following: Refreshes that were prepared over what is staged, to be published with it.
            groups: Groups that these are of.
            pauses: Members that nobody is to refresh afterwards, by their names then.
            unpauses: Members that are to be refreshed again.

        Returns:
            The publication, and how many seconds its transaction took.
        """
        publication = replace(
            self._publication(halves, greens, leases(), reason, stops, why),
            groups=groups,
            pauses=pauses,
            unpauses=unpauses,
        )
        begin = time.perf_counter()
        if following is None:
            self.catalog.publish_or_settle(publication)
        else:
            following.publish(publication)
        seconds = time.perf_counter() - begin
        record = self.catalog.publication(publication.uuid)
        assert record is not None  # or publishing would have raised
        return record, seconds

    def put_back(self, pairs: Sequence[Pair], moves: Sequence[Move], leases: tuple[Lease, ...]) -> None:
        """Put back what was written for an exchange that does not come about."""
        states = [state for p in pairs for state in (p.public, p.other)] + [m.state for m in moves]
        tables = [t for state in states for t in state.table.stored]
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
        halves: Halves,
        greens: Sequence[Green],
        leases: tuple[Lease, ...],
        reason: FullReason,
        stops: tuple[Stop, ...],
        why: str,
    ) -> Publication:
        renames = tuple(Rename(h.state.table.name, h.name) for h in halves if h.name != h.state.table.name)
        scheduling = self.catalog.scheduling_states()
        return Publication(
            swaps=tuple(swap for half in halves for swap in _swaps(half)),
            versions=tuple(_version(half) for half in halves if half.moved),
            frontiers=tuple(m for h in halves if (m := frontier_move(h, halves, scheduling)) is not None),
            history=tuple(self._entry(half, halves, reason, why) for half in halves),
            leases=leases,
            definitions=tuple(_definition(half) for half in halves),
            renames=renames,
            relation_renames=renames,
            greens=tuple(greens),
            stops=(*stops, *_still_stopped(halves)),
        )

    def _entry(self, half: Half, halves: Halves, reason: FullReason, why: str) -> HistoryEntry:
        move, now = frontier_move(half, halves), self.clock.now()
        meta = half.outcome.written.get(half.state.table.name)
        before = half.state.newest.row_count if half.state.newest else None
        return HistoryEntry(
            stream=half.name,
            started_at=now,
            finished_at=now,
            mode=RanAs.NO_CHANGE if half.renamed else RanAs.FULL,
            reason=reason.value,
            reason_detail=f"{reason.sentence}: {why}" if why else reason.sentence,
            rows_inserted=half.outcome.inserted,
            rows_deleted=half.outcome.deleted,
            rows_after=meta.row_count if meta is not None else before,
            stages=dict(half.outcome.seconds),
            frontier=None if move is None else move.frontier,
        )


def _moved(move: Move, deployment: str, redirects: Mapping[TableName, TableName]) -> Half:
    details = in_generation(from_json(move.state.table.details), deployment, redirects)
    return Half(move.state, move.name, move.state, details, Outcome(), altered=False)


def _still_stopped(halves: Halves) -> Iterator[Stop]:
    """Yield tables that are stopped, and only get another name."""
    for half in halves:
        table = half.state.table
        if half.renamed and table.status is Status.STOPPED:
            yield Stop(half.name, table.stopped_code or "", table.stopped_reason or "")


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
