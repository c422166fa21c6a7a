"""Sinks for users: `hr.sinks`. A verb each, like those of `Headrace`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.catalog import Catalog, Sink
from headrace.errors import HeadraceError, UserError
from headrace.results.sink_results import SinkInfo, SinkResult, SinkVerifyResult
from headrace.schedule import Kind, parse_schedule, stored_schedule
from headrace.sinks.registry import KINDS, sink_kind_of
from headrace.sinks.sink_kind import Captured, SinkRequest
from headrace.sources.registry import kind_of

if TYPE_CHECKING:
    from headrace.config import Settings
    from headrace.delivery.batches import Batch
    from headrace.delivery.deliverer import Deliverer
    from headrace.events import Events
    from headrace.names import TableName
    from headrace.project.declared_sinks import SinkStep
    from headrace.refresh.definition.stored_tables import StoredTables

DEFAULT_KIND = KINDS[0].name

PATIENCE_SECONDS = 60.0
"""Seconds to wait for others who write the same sink, as `headrace run` often does."""


class Sinks:
    """The sinks of a project.

    Args:
        catalog: The catalog.
        events: Told what happens.
        settings: Where everything is.
        name_of: Gives a stream table's name in full.
        tables: Gives what makes change logs.
    """

    def __init__(
        self,
        catalog: Catalog,
        events: Events,
        settings: Settings,
        name_of: Callable[[str], TableName],
        tables: Callable[[], StoredTables],
    ) -> None:
        self._catalog = catalog
        self._events = events
        self._settings = settings
        self._name_of = name_of
        self._tables = tables

    def create(
        self,
        name: str,
        stream: str,
        url: str,
        table: str,
        *,
        key: Sequence[str] = (),
        schedule: str | None = None,
        on_conflict: str | None = None,
        placement: str | None = None,
        distributed_by: str | None = None,
        colocated_with: str | None = None,
        if_not_exists: bool = False,
        kind: str = DEFAULT_KIND,
        options: Mapping[str, object] | None = None,
    ) -> SinkResult | None:
        """Write a stream table into a table of a database, and keep it up to date from then on.

        Args:
            name: The sink: a letter, then letters, digits and `_`.
            stream: The stream table.
            url: `postgresql://user@host:port/database`, the password from `PGPASSWORD` or `~/.pgpass`; or `env:NAME`
                for a URL, with a password or without, in an environment variable that is set wherever Headrace runs.
            table: `schema.table`, as PostgreSQL writes names; it is made if there is none.
            key: Columns that identify a row; without, equal rows are counted.
            schedule: When it is written, as for stream tables; None: as soon as something is published.
            on_conflict: `refuse`, to stop where others have changed the target; or `overwrite`.
            placement: Where a Citus cluster is to have the rows: `auto`, `local`, `reference` or `distributed`.
            distributed_by: The distribution column; by default the key's first, or a hash of the row.
            colocated_with: The distributed table, `schema.table`, whose shards its own are to lie beside.
            if_not_exists: Do nothing when it exists.
            kind: What kind of database.
            options: Whatever else the kind wants to know.

        Returns:
            The first load; None when there was nothing to do yet.

        Raises:
            HeadraceError: It cannot be written; nothing is left behind then.
        """
        if if_not_exists and any(sink.name == name for sink in self._catalog.sinks()):
            return None
        _check_name(name)
        _check_schedule(schedule)
        said = {
            "on_conflict": on_conflict,
            "placement": placement,
            "distributed_by": distributed_by,
            "colocated_with": colocated_with,
            **(options or {}),
        }
        request = SinkRequest(url, table, tuple(key), {k: v for k, v in said.items() if v})
        return self._deliverer().create(name, self._name_of(stream), kind, request, schedule, self._captured())

    def alter(
        self,
        name: str,
        *,
        schedule: str | None = None,
        clear_schedule: bool = False,
        on_conflict: str | None = None,
        placement: str | None = None,
        distributed_by: str | None = None,
        colocated_with: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Change when and how a sink is written; None leaves a setting as it is.

        Another placement is kept for the next `resync`, which moves a table that Headrace made.

        Args:
            name: The sink.
            schedule: As for `create`.
            clear_schedule: Write it as soon as something is published.
            on_conflict: As for `create`.
            placement: As for `create`; what was said of the former one is forgotten, its column, too.
            distributed_by: As for `create`.
            colocated_with: As for `create`.
            options: Whatever else the kind can change.

        Raises:
            UserError: `SINK_UNKNOWN`, `INVALID_SCHEDULE`, `INVALID_OPTION`.
        """
        sink = self._catalog.sink(name)
        _check_schedule(schedule)
        placed = {"placement": placement, "distributed_by": distributed_by, "colocated_with": colocated_with}
        said = {k: v for k, v in {"on_conflict": on_conflict, **placed, **(options or {})}.items() if v is not None}
        if said:
            former = {k: v for k, v in sink.options.items() if not (said.keys() & placed.keys() and k in placed)}
            self._set_options(sink, former | said)
        if schedule is not None or clear_schedule:
            self._catalog.set_sink_schedule(name, schedule)

    def apply(self, *, dry_run: bool = False) -> tuple[SinkStep, ...]:
        """Make the sinks as `headrace.toml` declares: create missing ones, alter others.

        Args:
            dry_run: Only say what would be done.

        Returns:
            What was (or would be) done, in order. Sinks that are not declared are left alone.

        Raises:
            HeadraceError: `SINK_DIFFERS` before anything is done; or the first failure, what was done before stays.
        """
        from headrace.project.declared_sinks import steps

        declared = self._settings.sinks
        planned = steps(declared, self._catalog.sinks(), self._name_of)
        for step in () if dry_run else planned:
            wanted = declared[step.sink]
            if step.action == "create":
                self.create(
                    step.sink,
                    wanted.stream,
                    wanted.url,
                    wanted.table,
                    key=wanted.key,
                    schedule=wanted.schedule,
                    kind=wanted.kind or DEFAULT_KIND,
                    options=wanted.options,
                )
            elif step.action == "alter":
                self.alter(
                    step.sink,
                    schedule=wanted.schedule,
                    clear_schedule=wanted.schedule is None,
                )
                self._set_options(self._catalog.sink(step.sink), wanted.options)
        return planned

    def drop(self, name: str, *, if_exists: bool = False, force: bool = False) -> bool:
        """Drop a sink; the rows stay where they were written.

        Args:
            name: The sink.
            if_exists: No error when there is none.
            force: Also when the server cannot be reached; its position stays there then.

        Returns:
            Whether there was one.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        if if_exists and all(sink.name != name for sink in self._catalog.sinks()):
            return False
        self._deliverer().drop(name, force=force)
        return True

    def write(self, name: str | None = None) -> tuple[SinkResult, ...]:
        """Bring sinks up to date, whatever their schedules say; refreshing does it by itself.

        Args:
            name: One sink, and those that are written with it; all that are not held when None.

        Raises:
            HeadraceError: The first failure, after the other sinks were written.
        """
        deliverer = self._deliverer()
        if name is not None:
            return deliverer.write([name])
        return deliverer.write_all()

    def write_for(self, streams: Iterable[TableName] | None) -> HeadraceError | None:
        """Write the sinks of stream tables that were refreshed by hand; of all of them for None.

        Returns:
            The first failure; targets stay at their last version then, which is consistent.
        """
        if not self._catalog.sinks():
            return None
        wanted = None if streams is None else set(streams)
        try:
            self._deliverer().write_all(
                lambda sink: (wanted is None or sink.stream in wanted) and not _by_hand_only(sink)
            )
        except HeadraceError as error:
            return error
        return None

    def due(self) -> tuple[Batch, ...]:
        """Return the sinks that are due by their schedules, in what is written at once."""
        return self._deliverer(0.0).due(dt.datetime.now(dt.UTC))

    def batches(self) -> tuple[Batch, ...]:
        """Return all sinks, due or not, in what is written at once."""
        return self._deliverer().batches()

    def write_batch(self, batch: Batch) -> None:
        """Write sinks that are due; who else writes them right now is not waited for.

        Nothing is written where one of them is held meanwhile.

        Raises:
            HeadraceError: What went wrong; it is remembered, and when to try again.
        """
        self._deliverer(0.0).write_due(batch)

    def resync(self, name: str) -> SinkResult:
        """Make a target equal to its stream table, whatever it holds; ends a stop.

        Only what differs is written. Columns of a table that Headrace made follow those of the stream table.

        Raises:
            UserError: `NOT_LOADED`.
            HeadraceError: It could not; the target stays as it is.
        """
        results = {result.sink: result for result in self._deliverer().write([name], anew=True)}
        if name not in results:
            stream = self._catalog.sink(name).stream
            raise UserError(
                "NOT_LOADED",
                f"{stream} has never been loaded, so that sink {name} has nothing to write.",
                hint=f"Run REFRESH STREAM TABLE {stream} first.",
            )
        return results[name]

    def pause(self, name: str) -> None:
        """Write nothing until `resume`; the stream table's change log is kept meanwhile.

        Raises:
            UserError: `SINK_NOT_ACTIVE`.
        """
        self._catalog.pause_sink(name)

    def resume(self, name: str) -> None:
        """End a pause, a stop, or a wait for the next try.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        self._catalog.resume_sink(name)

    def verify(self, name: str) -> SinkVerifyResult:
        """Compare a target with its stream table at the sink's position, by count, checksum and row.

        Raises:
            UserError: `SINK_UNKNOWN`, `SINK_NOT_LOADED`, `HISTORY_EXPIRED`.
        """
        return self._deliverer().verify(name)

    def list(self) -> tuple[SinkInfo, ...]:
        """Return all sinks; reads the catalog only."""
        return self._infos(None)

    def status(self, name: str) -> SinkInfo:
        """Return where a sink stands; reads the catalog only.

        Raises:
            UserError: `SINK_UNKNOWN`.
        """
        (info,) = self._infos(self._catalog.sink(name))
        return info

    # ---- inside

    def _infos(self, only: Sink | None) -> tuple[SinkInfo, ...]:
        """Return where one sink stands, as it was read, or where all do."""
        found = self.batches()
        held = {sink.name: batch.held for batch in found for sink in batch.sinks}
        now, infos = dt.datetime.now(dt.UTC), []
        with self._catalog.reading() as reader:
            newest = reader.newest_versions()
            for sink in reader.sinks() if only is None else (only,):
                first = reader.first_version_after(sink.stream, sink.version)
                behind = (now - first.committed_at).total_seconds() if first else 0.0
                waits_for, version = held.get(sink.name), newest.get(sink.stream)
                infos.append(
                    _info(sink, version.version if version else None, behind, waits_for.name if waits_for else None)
                )
        return tuple(infos)

    def _set_options(self, sink: Sink, said: Mapping[str, object]) -> None:
        """Change what may change of a sink's options; what is not said is as for a new sink."""
        of = sink_kind_of(sink.kind)
        said = {k: v for k, v in said.items() if k in of.alterable}
        chosen = of.options(SinkRequest(of.address(sink.options), of.table(sink.options), (), said))
        kept = {k: v for k, v in sink.options.items() if k not in of.alterable}
        self._catalog.set_sink_options(sink.name, kept | {k: v for k, v in chosen.items() if k in of.alterable})

    def _deliverer(self, patience: float = PATIENCE_SECONDS) -> Deliverer:
        from headrace.api.schedules.project_defaults import defaults_of
        from headrace.delivery.deliverer import Deliverer

        return Deliverer(self._catalog, self._tables(), self._events, defaults_of(self._settings), patience)

    def _captured(self) -> tuple[Captured, ...]:
        """Return what the project's sources capture."""
        with self._catalog.reading() as reader:
            sources = reader.sources()
        return tuple(
            Captured(source.name, address, tables)
            for source in sources
            for address, tables in kind_of(source.kind).captured(source).items()
        )


def _by_hand_only(sink: Sink) -> bool:
    return sink.schedule is not None and stored_schedule(sink.schedule).kind is Kind.MANUAL


def _check_name(name: str) -> None:
    """Refuse names that are no name of a channel of notifications."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name[:1].isalpha()
    if not plain or name != name.lower() or len(name) > 50:
        raise UserError(
            "INVALID_NAME",
            f"'{name}' cannot be the name of a sink.",
            hint="Use a lower-case letter, then lower-case letters, digits and _; 50 at most.",
        )


def _check_schedule(schedule: str | None) -> None:
    if schedule is not None and parse_schedule(schedule).kind is Kind.DOWNSTREAM:
        raise UserError(
            "INVALID_SCHEDULE",
            "The schedule 'DOWNSTREAM' means nothing for a sink: nothing reads it.",
            hint="Leave it out to write what is published at once; or write '1 minute', cron, or 'MANUAL'.",
        )


def _info(sink: Sink, newest: int | None, behind: float, held: str | None) -> SinkInfo:
    of = sink_kind_of(sink.kind)
    failure, unread = sink.failure, stored_schedule(sink.schedule).trouble if sink.schedule else ""
    error = f"[{failure.code}] {failure.message}" if failure else f"[INVALID_SCHEDULE] {unread}" if unread else None
    return SinkInfo(
        name=sink.name,
        stream=str(sink.stream),
        kind=sink.kind,
        url=of.address(sink.options),
        table=of.table(sink.options),
        key=tuple(sink.options.get("key", ())),
        schedule=sink.schedule,
        status=sink.status,
        version=sink.version,
        newest=newest,
        behind_seconds=max(0.0, round(behind, 1)),
        rows=sink.rows,
        written_at=sink.written_at,
        stopped_reason=sink.stopped_reason,
        failures=sink.failures,
        retry_at=sink.retry_at,
        last_error=error,
        remedy=failure.remedy if failure else None,
        waits_for=held if held != sink.name else None,
        placement=sink.placement,
    )
