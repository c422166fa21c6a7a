"""Writes sinks: creates, brings up to date, compares and drops them.

Positions are read and locked in the target first, then the catalog is read: whoever comes second waits, and then sees
what the first has done. So two who write at once write each version once, and a writer that was overtaken nothing.
"""

from __future__ import annotations

import datetime as dt
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from headrace.catalog import Catalog, Sink, resource_of
from headrace.catalog.relations import not_found
from headrace.delivery.batches import FIRST, LONGEST, Batch, batch_due, batches
from headrace.delivery.sink_cut import columns_of, sink_cut
from headrace.errors import HeadraceError, UserError
from headrace.events import Events, SinkFailed, SinkWritten, StageStarted
from headrace.names import LAKE, TableName
from headrace.refresh.definition.create import refuse_green
from headrace.refresh.definition.stored_tables import StoredTables
from headrace.refresh.groups.grouping import Defaults, grouping_of
from headrace.refresh.held_leases import holding_leases
from headrace.results.sink_results import SinkResult, SinkVerifyResult
from headrace.sinks.registry import sink_kind_of
from headrace.sinks.sink_kind import Captured, SinkRequest

PATIENCE = 60.0
"""Seconds that a verb waits for others who write the same sinks, or refresh their stream tables."""

HELD = "SINK_HELD"
"""Code of the error of a sink that is not written until somebody decides."""


class Deliverer:
    """Writes the sinks of one project.

    Args:
        catalog: The catalog.
        tables: Makes change logs.
        events: Told what happens.
        defaults: What the project wants where a stream table says nothing; decides which belong to a group.
        patience: Seconds to wait for others.
    """

    def __init__(
        self,
        catalog: Catalog,
        tables: StoredTables,
        events: Events,
        defaults: Defaults,
        patience: float = PATIENCE,
    ) -> None:
        self._catalog = catalog
        self._tables = tables
        self._events = events
        self._defaults = defaults
        self._patience = patience

    def create(
        self,
        name: str,
        stream: TableName,
        kind: str,
        request: SinkRequest,
        schedule: str | None,
        captured: Sequence[Captured],
    ) -> SinkResult | None:
        """Create a sink and load it; where that fails, nothing is left behind.

        Returns:
            What was written; None where the stream table was never loaded, or others of its group are held.
        """
        table = self._catalog.stream_table(stream)
        refuse_green(self._catalog, stream)
        of = sink_kind_of(kind)
        options = of.options(request)
        of.check(options, columns_of(table), captured)
        with holding_leases(self._catalog, [resource_of(stream)], patience=self._patience):
            self._tables.start_logs(self._tables.logless([stream]))
            sink = self._catalog.create_sink(name, str(uuid.uuid4()), of.name, stream, options, schedule)
        try:
            results = self.write([name])
        except BaseException as error:  # an interrupt, too, must not leave half a sink behind
            if isinstance(error, HeadraceError) and error.code == HELD:  # another one, with which it is written
                return None
            self._undo(sink)
            raise
        return next((result for result in results if result.sink == name), None)

    def _undo(self, sink: Sink) -> None:
        """Leave nothing of a sink that could not be created; its target may be committed already."""
        with ExitStack() as held:
            with suppress(HeadraceError):  # or somebody who writes all sinks would write it in between
                held.enter_context(holding_leases(self._catalog, [_resource(sink)], patience=self._patience))
            with suppress(HeadraceError), sink_kind_of(sink.kind).writing(sink.options, lambda _: None) as target:
                target.undo_load(sink.options, sink.uuid)
            self._catalog.drop_sink(sink.name)
        self._tables.end_unread_logs()

    def drop(self, name: str, *, force: bool = False) -> None:
        """Drop a sink; the rows stay where they are.

        Args:
            name: The sink.
            force: Also where its server cannot be asked to forget the position.
        """
        found = self._catalog.sink(name)
        with holding_leases(self._catalog, [_resource(found)], patience=self._patience):
            sink = self._catalog.sink(name)  # it may have been dropped, or altered, while it was waited for
            if sink.uuid != found.uuid:
                self.drop(name, force=force)
                return
            try:
                with sink_kind_of(sink.kind).writing(sink.options, lambda _: None) as target:
                    target.forget(sink.uuid)
            except HeadraceError as error:
                if not force:
                    error.hint = (
                        f"{error.hint or ''} `headrace sink drop {name} --force` drops it all the same.".strip()
                    )
                    raise
            self._catalog.drop_sink(name)
        self._tables.end_unread_logs()

    def batches(self) -> tuple[Batch, ...]:
        """Return all sinks, cut into what is written in one transaction."""
        sinks = self._catalog.sinks()
        if not sinks:
            return ()
        units = grouping_of(self._catalog, self._defaults).units.unit_of
        return batches(
            sinks,
            lambda stream: units.get(stream, stream),
            lambda sink: sink_kind_of(sink.kind).database(sink.options),
        )

    def due(self, now: dt.datetime) -> tuple[Batch, ...]:
        """Return the batches that are due; a few small queries while nothing is."""
        with self._catalog.reading() as reader:
            heads = ((sink, reader.newest_version(sink.stream)) for sink in reader.sinks())
            if not any(head is not None and head.version != sink.version for sink, head in heads):
                return ()
        found = self.batches()
        with self._catalog.reading() as reader:
            newest = {n: v.version for n, v in reader.newest_versions().items() if n.catalog == LAKE}

            def behind_since(sink: Sink) -> dt.datetime | None:
                first = reader.first_version_after(sink.stream, sink.version)
                return first.committed_at if first else None

            times = [(batch, batch_due(batch, newest, behind_since, now)) for batch in found]
        return tuple(batch for batch, due in times if due is not None and due <= now)

    def write(self, names: Sequence[str], *, anew: bool = False) -> tuple[SinkResult, ...]:
        """Bring sinks, and those that are written with them, up to date.

        Args:
            names: The sinks.
            anew: Make the targets of these equal whatever they hold; ends a stop.

        Raises:
            UserError: `SINK_UNKNOWN`, `SINK_HELD`.
            HeadraceError: What went wrong with the first that failed, after the others were written.
        """
        for name in names:
            self._catalog.sink(name)
        wanted = [batch for batch in self.batches() if any(sink.name in names for sink in batch.sinks)]
        results = self._write_each(wanted, anew=names if anew else ())
        for name in names:
            self._catalog.sink(name)  # it may have been dropped while it was waited for
        return results

    def write_all(self, wanted: Callable[[Sink], bool] = lambda _: True) -> tuple[SinkResult, ...]:
        """Bring wanted sinks, and what is written with them, up to date; leave out what is held.

        Raises:
            HeadraceError: What went wrong with the first that failed, after the others were written.
        """
        found = [batch for batch in self.batches() if any(wanted(sink) for sink in batch.sinks)]
        return self._write_each(found, passing=HELD)

    def write_due(self, batch: Batch) -> None:
        """Write a batch that was found to be due, unless it is held by now.

        Raises:
            HeadraceError: What went wrong; nothing was written.
        """
        self._write_each([batch], passing=HELD)

    def _write_each(
        self, found: Iterable[Batch], *, anew: Sequence[str] = (), passing: str | None = None
    ) -> tuple[SinkResult, ...]:
        results: list[SinkResult] = []
        errors: list[HeadraceError] = []
        for batch in found:
            try:
                results += self._write(batch, anew)
            except HeadraceError as error:
                if error.code != passing:
                    errors.append(error)
        if errors:
            raise errors[0]
        return tuple(results)

    def _write(self, batch: Batch, anew: Sequence[str]) -> tuple[SinkResult, ...]:
        """Write sinks in one transaction, and remember how that went.

        Args:
            batch: The sinks.
            anew: Those whose targets are made equal whatever they hold.

        Raises:
            UserError: `SINK_HELD`.
            HeadraceError: What went wrong; nothing was written.
        """
        begun = time.perf_counter()
        writing: list[str] = []
        _refuse_held(batch, anew)
        resources = sorted(_resource(sink) for sink in batch.sinks)
        with holding_leases(self._catalog, resources, patience=self._patience):
            batch = self._as_it_is(batch)
            if not batch.sinks:
                return ()
            _refuse_held(batch, anew)
            try:
                results = self._written(batch, anew, writing, begun)
            except HeadraceError as error:
                self._note_failure(batch, error, writing)
                raise
            for result, sink in zip(results, batch.sinks, strict=True):
                if result is not None:
                    self._catalog.note_sink_written(
                        sink.uuid, result.version, result.rows, anew=sink.name in anew, placement=result.placement
                    )
        found = tuple(result for result in results if result is not None)
        for result in found:
            if result.how != "nothing":
                self._events.emit(
                    SinkWritten(result.sink, result.version, result.inserted, result.deleted, result.seconds)
                )
        return found

    def _as_it_is(self, batch: Batch) -> Batch:
        """Read a batch's sinks again, which may have been dropped, held or altered meanwhile."""
        found = {sink.uuid: sink for sink in self._catalog.sinks()}
        return replace(batch, sinks=tuple(found[sink.uuid] for sink in batch.sinks if sink.uuid in found))

    def _written(self, batch: Batch, anew: Sequence[str], writing: list[str], begun: float) -> list[SinkResult | None]:
        kind = sink_kind_of(batch.kind)

        def told(stage: str) -> None:
            self._events.emit(StageStarted(writing[-1] if writing else batch.name, f"sink {stage}"))

        results: list[SinkResult | None] = []
        with kind.writing(batch.sinks[0].options, told) as target:
            streams: defaultdict[TableName, set[int]] = defaultdict(set)
            for sink in batch.sinks:
                position = target.position(sink.uuid)
                streams[sink.stream] |= set() if position is None else {position.version}
            cut = sink_cut(self._catalog, streams)
            for sink in batch.sinks:
                writing.append(sink.name)
                if sink.stream not in cut.tables:
                    raise not_found(sink.stream)
                delivery = cut.delivery(sink, anew=sink.name in anew)
                if delivery is None:
                    results.append(None)
                    continue
                done = target.deliver(sink.options, delivery)
                seconds = time.perf_counter() - begun
                results.append(
                    SinkResult(
                        sink.name,
                        done.how,
                        delivery.version,
                        done.inserted,
                        done.deleted,
                        done.rows,
                        seconds,
                        done.placement,
                    )
                )
            writing.clear()
        return results

    def _note_failure(self, batch: Batch, error: HeadraceError, writing: Sequence[str]) -> None:
        """Remember a failure with all sinks of a batch; stop the one that failed for good."""
        stops = error.code in sink_kind_of(batch.kind).stopping
        now = dt.datetime.now(dt.UTC)

        def retry_at(failures: int) -> dt.datetime:
            pause = min(LONGEST, FIRST * 2 ** (min(failures, 10) - 1)) * (1 + random.random() / 4)
            return now + dt.timedelta(seconds=pause)

        for sink in batch.sinks:
            own = not writing or sink.name == writing[-1]
            self._catalog.note_sink_failure(sink.name, error, retry_at, stops=stops and own)
            if own and (sink.failure is None or sink.failure.code != error.code):
                self._events.emit(SinkFailed(sink.name, error.code, error.message))

    def verify(self, name: str) -> SinkVerifyResult:
        """Compare a sink's target with its stream table at the sink's position.

        Raises:
            UserError: `SINK_UNKNOWN`, `SINK_NOT_LOADED`, `HISTORY_EXPIRED`.
        """
        sink = self._catalog.sink(name)
        with sink_kind_of(sink.kind).writing(sink.options, lambda _: None) as target:
            position = target.position(sink.uuid)
            if position is None:
                raise UserError(
                    "SINK_NOT_LOADED",
                    f"Sink {name} was never written.",
                    hint=f"`headrace sink write {name}` writes it.",
                )
            cut = sink_cut(self._catalog, {sink.stream: [position.version]})
            version = cut.positions.get((sink.stream, position.version))
            if version is None:
                raise UserError(
                    "HISTORY_EXPIRED",
                    f"{sink.stream} can no longer be read as of version {position.version}, which the sink has.",
                    hint=f"Bring it up to date first: `headrace sink write {name}`.",
                )
            columns = columns_of(cut.tables[sink.stream])
            found = target.compare(sink.options, columns, lambda: cut.rows_at(sink.stream, version))
        return SinkVerifyResult(
            sink=name,
            ok=not (found.missing or found.unexpected),
            version=position.version,
            rows=found.rows,
            checksum=f"{found.checksum % 2**64:016x}",
            expected_rows=found.expected,
            expected_checksum=f"{found.expected_checksum % 2**64:016x}",
            missing=found.missing,
            unexpected=found.unexpected,
            examples=found.examples,
        )


def _resource(sink: Sink) -> str:
    return f"sink {sink.uuid}"


def _refuse_held(batch: Batch, anew: Sequence[str]) -> None:
    """Refuse to write a batch of which a sink is held, unless a resync of that one ends it."""
    held = batch.held
    if held is None or held.name in anew:
        return
    why = f": {held.stopped_reason}" if held.stopped_reason else "."
    others = "" if len(batch.sinks) == 1 else f" {batch.name} are written together, or not at all."
    raise UserError(
        HELD,
        f"Sink {held.name} is {held.status.value}{why}{others}",
        hint=f"`headrace sink resume {held.name}` has it tried again; `headrace sink resync {held.name}` makes its "
        "target equal to the stream table.",
    )
