"""Maintains everything stored: compaction, expiry, log trimming, orphan files, pins.

Works table by table under the table's lease, in `staging`, and publishes like everything else. A table that is being
refreshed is left for the next time: maintenance is never in the way, unless it is asked to wait for tables.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from headrace.catalog import (
    Catalog,
    Lease,
    LogChange,
    Mirror,
    Publication,
    Sink,
    StreamTable,
    Swap,
    Version,
    resource_of,
)
from headrace.catalog.records import Retired
from headrace.catalog.relations import not_found
from headrace.error_codes.outages import OUTAGES, SURROUNDINGS
from headrace.errors import HeadraceError, UserError
from headrace.frontier import Frontier
from headrace.lake.files.deleted_folders import delete_folder
from headrace.lake.maintenance_tasks import (
    Chore,
    Policy,
    Task,
    plan_maintenance,
    purge,
    remove_orphans,
    run_tasks,
    trim_log,
)
from headrace.lake.metadata import TableMeta
from headrace.lake.pins import former_pins, plan_pins
from headrace.names import CLOCK, LAKE, STAGING, TableName
from headrace.ports import Runner, Session
from headrace.refresh.cut.align_cut import readable_later
from headrace.refresh.cut.cut import Cut, metadata
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.held_leases import holding_leases
from headrace.refresh.repair import lake_is_there
from headrace.refresh.staging_tables import only_rewritten, untouched
from headrace.refresh.staging_tables import staged as in_staging
from headrace.results.refresh_results import Record
from headrace.sources.lakehouse.missing_files import is_lost

BUSY = frozenset({"DEFINITION_CHANGED", "LEASE_HELD", "STAGING_CHANGED", "COMMIT_CONFLICT", "FOREIGN_WRITER"})
"""Somebody else works on a table, which is left alone this time; others are not."""

VERSIONS_STAY = dt.timedelta(days=7)
"""Versions superseded more recently stay, however early snapshots expire: lags are told by them."""

KEPT_BY_SERVER = "its catalog server keeps old files, and removes them by itself (gc.enabled = false)"


@dataclass(frozen=True, slots=True)
class MaintenanceResult(Record):
    """One thing maintenance did, or (dry run) would do.

    Args:
        name: The stored table, the user's table that is pinned, `history` or `versions`.
        action: `compact`, `expire`, `trim_log`, `drop_log`, `remove_orphans`, `remove_dropped`, `trim_history`,
            `trim_versions`, `pin`, `skipped`, `failed`.
        detail: What exactly.
    """

    name: str
    action: str
    detail: str

    @property
    def failed(self) -> bool:
        """Return whether a table could not be maintained, while others were."""
        return self.action == "failed"


@dataclass(frozen=True, slots=True)
class Needs:
    """Versions that frontiers, sinks, gates and aligned tables need, read once."""

    tables: Mapping[TableName, StreamTable]
    mirrors: Mapping[TableName, Mirror]
    frontiers: Mapping[TableName, Frontier]
    newest: Mapping[TableName, Version]
    snapshots: Mapping[TableName, frozenset[int]]
    streams: frozenset[TableName] = field(default_factory=frozenset)
    sinks: tuple[Sink, ...] = ()


def maintain(
    catalog: Catalog,
    session: Session,
    *,
    older_than: dt.timedelta,
    orphans_older_than: dt.timedelta,
    dry_run: bool,
    defaults: Defaults,
    keep_history: dt.timedelta | None = None,
    names: Collection[TableName] | None = None,
    wanted: Callable[[TableName], bool] = lambda _: True,
    waits: Callable[[], bool] = lambda: False,
) -> tuple[MaintenanceResult, ...]:
    """Do what is due.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        older_than: Snapshots replaced more recently than this stay readable.
        orphans_older_than: Unreferenced files younger than this stay; at least a day.
        dry_run: Only say what is due.
        defaults: What the project wants where a stream table says nothing.
        keep_history: Refreshes that ended longer ago are forgotten, with all tables; None for none.
        names: Stream tables and mirrors to maintain; None for all, and for the files of what was dropped.
        wanted: Asked before each stream table whether it is its turn.
        waits: Whether a table that somebody else works on is waited for still; asked again and again.

    Raises:
        UserError: `INVALID_OPTION` for ages that would delete what running readers use; `STREAM_TABLE_NOT_FOUND`;
            `CATALOG_COPIED`.
    """
    if older_than < dt.timedelta(0) or orphans_older_than < dt.timedelta(days=1):
        raise UserError(
            "INVALID_OPTION",
            "Snapshots cannot be kept for a negative time, nor orphan files for less than a day.",
            hint="A refresh that runs right now writes files that nothing refers to yet.",
        )
    catalog.refuse_copy()
    policy = Policy(keep=older_than, orphan_age=orphans_older_than)
    needs, results = needs_of(catalog, defaults), []
    stored: dict[TableName, StreamTable | Mirror] = {**needs.tables, **needs.mirrors}
    for name in names or ():
        if name not in stored:
            raise not_found(name)
    for table in (stored[name] for name in (stored if names is None else dict.fromkeys(names))):
        if not wanted(table.name):
            continue
        try:
            resources, held_up = [resource_of(table.name)], lambda: not waits()
            with holding_leases(catalog, resources, patience=math.inf, given_up=held_up) as leases:
                # only now: it may have been dropped, or stored anew, while others were maintained
                now = table if isinstance(table, Mirror) else catalog.find_stream_table(table.name)
                if now is not None:
                    results += _table(catalog, session, needs, now, policy, leases(), dry_run)
        except HeadraceError as error:
            if error.code in SURROUNDINGS:
                raise  # the others would meet it, too
            results.append(_left(table.name, error))
    if names is None and not dry_run:
        catalog.reset_staging()  # what was being made by somebody who was killed
    if names is None:
        results += _remove_dropped(catalog, session, stored, older_than, dry_run)
        results += _unread_pins(catalog, session, needs, dry_run)
        results += _trim_history(catalog, keep_history, dry_run)
    results += _pins(catalog, session, needs, stored if names is None else names, dry_run)
    if names is None:  # after the pins: versions tell which of former ones are the project's
        results += _trim_versions(catalog, older_than, dry_run)
    return tuple(results)


def needs_of(catalog: Catalog, defaults: Defaults) -> Needs:
    """Read which versions frontiers, gates and aligned tables need."""
    with catalog.reading() as reader:
        tables = {t.name: t for t in reader.stream_tables()}
        mirrors = {m.name: m for source in reader.sources() for m in source.mirrors}
        frontiers, newest, sinks = reader.frontiers(), reader.newest_versions(), reader.sinks()
        wanted: defaultdict[TableName, set[int]] = defaultdict(set)
        for name, number in chain.from_iterable(frontier.items() for frontier in frontiers.values()):
            wanted[name].add(number)
        for name, gate in reader.gates().items():
            wanted[name].add(gate.version)
        for sink in sinks:
            if sink.version is not None:
                wanted[sink.stream].add(sink.version)
        later = [*reader.each_version_at(wanted), *readable_later(reader, tables, frontiers, defaults)]
    needed: dict[TableName, set[int]] = {}
    for version in later:
        if version.snapshot_id is not None:
            needed.setdefault(version.relation, set()).add(version.snapshot_id)
    for name, version in newest.items():
        if (name in tables or name in mirrors) and version.snapshot_id is not None:
            needed.setdefault(name, set()).add(version.snapshot_id)
    return Needs(
        tables, mirrors, frontiers, newest, {n: frozenset(s) for n, s in needed.items()}, frozenset(tables), sinks
    )


def _table(
    catalog: Catalog,
    session: Session,
    needs: Needs,
    table: StreamTable | Mirror,
    policy: Policy,
    leases: tuple[Lease, ...],
    dry_run: bool,
) -> list[MaintenanceResult]:
    catalog.reset_staging(table.stored, held=leases)
    if foreign := catalog.foreign_writes(table.stored):
        return [MaintenanceResult(str(foreign[0].name), "skipped", "it was written by somebody else")]
    ours = catalog.pointers(STAGING, [t.within(STAGING) for t in table.stored])  # else others made it
    shown = catalog.pointers(LAKE, table.stored)
    pointers = {n: p.metadata_location for n, p in shown.items() if n.within(STAGING) in ours}
    now = dt.datetime.now(dt.UTC)
    kept, results = catalog.files_kept_by_server(table.stored), []
    for stored in (t for t in table.stored if t in pointers):
        staged, meta = stored.within(STAGING), metadata(pointers[stored])
        current = {meta.current_snapshot_id} if meta.current_snapshot_id is not None else set()
        needed = needs.snapshots.get(stored, frozenset()) | current
        tasks: tuple[Task, ...] = ()
        if stored == table.log and (through := trimmable(needs, table.name)) is not None:
            tasks = trim_log(staged, through)
        tasks += plan_maintenance(staged, meta, needed=needed, now=now, policy=policy)
        if stored in kept:
            tasks = tuple(t for t in tasks if t.chore is not Chore.EXPIRE)
            results.append(MaintenanceResult(str(stored), "skipped", KEPT_BY_SERVER))
        else:
            tasks += (remove_orphans(staged, now, policy, location=meta.location),)
        results += [MaintenanceResult(str(stored), t.chore.value.lower(), t.sql) for t in tasks]
        if not dry_run:
            before = untouched(catalog, stored)
            if run_tasks(tasks, session.runner(), partial(in_staging, catalog, stored)):
                after = only_rewritten(catalog, stored, before, trimmed=stored == table.log)
                swap = Swap(stored, pointers[stored], staged=after.metadata_location)
                catalog.publish_or_settle(Publication(swaps=(swap,), leases=leases))
    return results if isinstance(table, Mirror) else results + _unread_log(catalog, table, leases, dry_run)


def trimmable(needs: Needs, name: TableName) -> int | None:
    """Return the newest log version that every consumer has seen; None when nothing can go.

    A stream table's log without consumers is dropped; a mirror's stays, and is emptied.
    """
    seen = [f[name] for f in needs.frontiers.values() if name in f]
    seen += [sink.version for sink in needs.sinks if sink.stream == name and sink.version is not None]
    if any(sink.stream == name and sink.version is None for sink in needs.sinks):
        return None
    waiting = [t for t in needs.tables.values() if name in t.sources and name not in needs.frontiers.get(t.name, {})]
    if name in needs.mirrors and not seen and not waiting and name in needs.newest:
        seen = [needs.newest[name].version]
    return min(seen) if seen and not waiting and min(seen) > 0 else None


def _unread_log(
    catalog: Catalog, table: StreamTable, leases: tuple[Lease, ...], dry_run: bool
) -> list[MaintenanceResult]:
    """Drop a change log that nobody reads any more; a new consumer starts a new one."""
    if table.log is None:
        return []
    with catalog.reading() as reader:  # now: its first consumer may have come while other tables were maintained
        read = {source for each in reader.stream_tables() for source in each.sources}
        read |= {sink.stream for sink in reader.sinks()}
    if table.name in read:
        return []
    if not dry_run:
        catalog.publish_or_settle(Publication(deletes=(table.log,), leases=leases, logs=(LogChange(table.name, None),)))
    return [MaintenanceResult(str(table.log), "drop_log", f"nobody reads the changes of {table.name}")]


def _remove_dropped(
    catalog: Catalog, session: Session, there: Collection[TableName], older_than: dt.timedelta, dry_run: bool
) -> list[MaintenanceResult]:
    """Remove files of tables dropped or replaced longer ago than any reader runs.

    A server that keeps the files of tables which are there keeps theirs, too.
    """
    before = dt.datetime.now(dt.UTC) - older_than
    retired = catalog.retired(before)
    if retired and catalog.files_kept_by_server(there):
        return []
    results = []
    for gone in retired:
        done = f"files of {gone.folder}"
        if not dry_run:
            try:
                purge(session.runner(), gone.metadata_location)
            except HeadraceError as error:
                if not _are_lost(catalog, gone, error):
                    results.append(MaintenanceResult(gone.name, "skipped", error.message))
                    continue
                if gone not in catalog.retired(before):  # it was made again in that folder meanwhile
                    continue
                done = f"{done}, with whatever was left of it, as files were missing already"
                if (failure := _folder_removed(gone.folder)) is not None:
                    done = f"{done}; what could not be removed ({failure}) belongs to nothing"
            catalog.forget(gone)
        results.append(MaintenanceResult(gone.name.split("#")[0], "remove_dropped", done))
    return results


def _folder_removed(folder: str) -> str | None:
    """Remove what is left in a folder; return why that was not possible."""
    try:
        delete_folder(folder)
    except OSError as error:
        return " ".join(str(error).split())
    return None


def _are_lost(catalog: Catalog, gone: Retired, error: HeadraceError) -> bool:
    """Return whether a table's metadata is lost, while the warehouse is there."""
    with suppress(HeadraceError):  # a store that lets nothing be read has lost nothing
        return (error.code == "FILE_MISSING" or is_lost(gone.metadata_location)) and lake_is_there(catalog)
    return False


def _trim_history(catalog: Catalog, keep: dt.timedelta | None, dry_run: bool) -> list[MaintenanceResult]:
    """Forget refreshes that ended long ago."""
    if keep is None:
        return []
    before = catalog.now() - keep
    return _trimmed("history", "ended", before, catalog.forget_history(before, dry_run=dry_run))


def _trim_versions(catalog: Catalog, older_than: dt.timedelta, dry_run: bool) -> list[MaintenanceResult]:
    """Forget versions whose snapshots are not kept any more."""
    before = catalog.now() - max(older_than, VERSIONS_STAY)
    return _trimmed("versions", "were superseded", before, catalog.forget_versions(before, dry_run=dry_run))


def _trimmed(name: str, how: str, before: dt.datetime, count: int) -> list[MaintenanceResult]:
    """Tell how many rows of the catalog were forgotten, if any."""
    detail = f"{count} that {how} before {before:%Y-%m-%d %H:%M} UTC"
    return [MaintenanceResult(name, f"trim_{name}", detail)] if count else []


def _pins(
    catalog: Catalog, session: Session, needs: Needs, readers: Collection[TableName], dry_run: bool
) -> list[MaintenanceResult]:
    """Tag the snapshots of users' tables that frontiers refer to, against expiry."""
    sources = sorted(_read(needs, readers) - needs.streams - needs.mirrors.keys() - {CLOCK})
    heads = Cut(catalog, session.location)
    results: list[MaintenanceResult] = []
    there = heads.versions(sources, lambda name, error: results.append(_left(name, error)))
    for source in (s for s in sources if s in there):
        try:
            meta = heads.of([source], needs.streams)[source].meta
            results += _pin(catalog, session, needs, source, meta, dry_run)
        except HeadraceError as error:
            if error.code in SURROUNDINGS - OUTAGES:
                raise  # while a catalog of the user's may be away, or refuse tags, and others not
            results.append(_left(source, error))
    return results


def _pin(
    catalog: Catalog, session: Session, needs: Needs, source: TableName, meta: TableMeta, dry_run: bool
) -> list[MaintenanceResult]:
    mark = catalog.pinned_sources().get(source, "new") if dry_run else catalog.mark_pinned(source)
    seen: Collection[int] = ()
    if former := former_pins(meta):
        with catalog.reading() as reader:
            seen = reader.first_shown(source, former.values())
    statements = plan_pins(source, meta, needs.snapshots.get(source, frozenset()), mark, frozenset(seen))
    if not dry_run:
        _run_all(session.runner(), statements)
    return [MaintenanceResult(str(source), "pin", sql) for sql in statements]


def _unread_pins(catalog: Catalog, session: Session, needs: Needs, dry_run: bool) -> list[MaintenanceResult]:
    """Remove the tags on sources that no stream table reads any more, unless a gate needs them."""
    own = {name for table in needs.tables.values() for name in table.stored}
    own |= {name for mirror in needs.mirrors.values() for name in mirror.stored}
    results: list[MaintenanceResult] = []
    for source in sorted(catalog.pinned_sources().keys() - _read(needs, needs.tables)):
        try:
            # what is stored under the name of a source that was dropped never had a tag
            location = None if source in own else _location(catalog, session, source)
            if location is not None:
                results += _pin(catalog, session, needs, source, metadata(location), dry_run)
            if not dry_run and (location is None or source not in needs.snapshots):
                catalog.forget_pinned(source)
        except HeadraceError as error:
            if error.code in SURROUNDINGS - OUTAGES:
                raise
            why = f"nobody reads it any more, but its tags cannot be dropped: [{error.code}] {error.message}"
            results.append(MaintenanceResult(str(source), "skipped", why))
    return results


def _read(needs: Needs, readers: Collection[TableName]) -> set[TableName]:
    """Return what some stream tables read."""
    return {source for name in readers if name in needs.tables for source in needs.tables[name].sources}


def _location(catalog: Catalog, session: Session, source: TableName) -> str | None:
    """Return the metadata file of a table, if there is such a table; its state is not noted."""
    if source.catalog != LAKE:
        return session.location(source)
    pointer = catalog.pointers(LAKE, [source]).get(source)
    return None if pointer is None or pointer.is_view else pointer.metadata_location


def _left(name: TableName, error: HeadraceError) -> MaintenanceResult:
    """Tell of a table with which something was in the way."""
    if error.code in BUSY:
        return MaintenanceResult(str(name), "skipped", error.message)
    why = " ".join(filter(None, (f"[{error.code}]", error.message, error.hint)))
    return MaintenanceResult(str(name), "failed", why)


def _run_all(runner: Runner, statements: tuple[str, ...]) -> None:
    for sql in statements:
        runner.run(sql)
