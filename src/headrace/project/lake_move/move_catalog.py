"""The door: moves a project, forth or back, or says what moving it would do.

It also confirms the database that a project is in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headrace import config
from headrace.api.own_tables import owners_of
from headrace.catalog import Catalog
from headrace.catalog.own_database import shown as database_shown
from headrace.catalog.remote_lake.home import shown
from headrace.errors import UserError
from headrace.events import Events
from headrace.lake.files.file_access import reach_by
from headrace.lake.rest.open_lake import open_lake, open_registrar
from headrace.lakes.lake_settings import LakeSettings
from headrace.lakes.storage_settings import warehouses
from headrace.names import LAKE, TableName
from headrace.project.lake_move import move_guards as guards
from headrace.project.lake_move.move_back import MoveBack
from headrace.project.lake_move.move_forth import MoveForth
from headrace.project.moved_project import refuse_moved
from headrace.refresh.held_leases import holding_leases_in_turn
from headrace.results.move_results import CatalogMove, MovedTable

_BOTH = "both would write to and delete the same files, and read the same slots"

PATIENCE = 60.0
"""Seconds that a move waits for refreshes that run."""


def move_catalog(
    path_or_settings: str | Path | config.Settings = ".",
    *,
    back: bool = False,
    here: bool = False,
    dry_run: bool = False,
    events: Events | None = None,
) -> CatalogMove:
    """Move a project's tables to the REST catalog that its settings name, or back.

    Or confirm the database that its catalog is in. No data is written.

    Args:
        path_or_settings: The project folder (or its headrace.toml), with a section [lake], or settings made by hand.
        back: Move them from there to the catalog's own database; [lake] is taken out of headrace.toml afterwards.
        here: Move no tables, and confirm that the catalog's database is the project's own from now on: a backup that
            was put back, a database on another server, or one that was upgraded. Of a copy beside the original, which
            goes on, both would delete the other's files.
        dry_run: Say what would be done, and change nothing.
        events: Hears how far it is.

    Raises:
        UserError: `INVALID_OPTION`, `LAKE_MOVE_REFUSED`, `LAKE_NAME_TAKEN`, `LAKE_UNSUPPORTED`, `LAKE_CHANGED`,
            `PROJECT_MOVED`, `PROJECT_COPIED`, `CATALOG_COPIED`.
        EnvironmentFault: `LEASE_HELD`, `LAKE_BUSY`, `LAKE_REFUSED`, `LAKE_DENIED`, `LAKE_UNREACHABLE`,
            `FOREIGN_WRITER`, `PUBLICATION_PENDING`, `METADATA_UNREADABLE`. Nothing was moved.
    """
    given = isinstance(path_or_settings, config.Settings)
    settings = path_or_settings if isinstance(path_or_settings, config.Settings) else config.load(path_or_settings)
    lake, told = settings.lake, events or Events()
    if here:
        if back:
            raise UserError("INVALID_OPTION", "A project is moved back, or confirmed where it is: one at a time.")
        return _confirm(settings, told, dry_run=dry_run)
    if lake is None:
        raise guards.not_named()
    for warehouse, properties in warehouses(settings.warehouse, settings.storage, settings.spark_options).items():
        reach_by(warehouse, properties)
    server = open_lake(lake) if back else None
    began = time.monotonic()
    with Catalog.open(settings.catalog_url, events=told, create=given, lake=server) as catalog:
        if server is None:
            refuse_moved(replace(settings, lake=None), catalog)
        there = catalog.lake_identity()
        if there == (None if back else lake.identity):
            return _nothing(there)
        if there is not None:
            catalog.refuse_other_lake(lake.identity)
        catalog.bind_lake(lake.identity if back else None)
        if not dry_run:
            guards.refuse_running(catalog)
        guards.refuse_deployments(catalog)
        if server is not None:
            return _move_back(catalog, MoveBack(catalog, server, settings.warehouse), lake, began, dry_run=dry_run)
        forth = MoveForth(catalog, open_registrar(lake), lake.identity, told)
        return _move_forth(catalog, forth, lake, began, dry_run=dry_run)


def _confirm(settings: config.Settings, events: Events, *, dry_run: bool) -> CatalogMove:
    began = time.monotonic()
    with Catalog.open(settings.catalog_url, events=events, create=False) as catalog:
        former, found = catalog.confirm_database(dry_run=dry_run)
    if found is None:
        why = "This database does not tell whether it is a copy, so that nothing is held against it."
        unknown = "the catalog's database"
        return CatalogMove(unknown, unknown, False, (), (), (), (why,), 0.0)
    source, target = database_shown(former or found), database_shown(found)
    notes = () if source == target else (f"Nobody may use the former one any more: {_BOTH}.",)
    return CatalogMove(source, target, source != target and not dry_run, (), (), (), notes, time.monotonic() - began)


def _move_forth(catalog: Catalog, move: MoveForth, lake: LakeSettings, began: float, *, dry_run: bool) -> CatalogMove:
    if dry_run:
        guards.refuse_changed(catalog)
        move.plan()
    else:
        with holding_leases_in_turn(catalog, guards.resources(catalog), patience=PATIENCE) as leases:
            move.carry_out(leases)
    tables = {
        TableName(LAKE, tuple(key[0].split(".")), key[1]): (move.actions[key], entry.location, entry.is_view)
        for key, entry in move.entries.items()
    }
    return CatalogMove(
        source=shown(None),
        target=shown(lake.identity),
        moved=not dry_run,
        tables=_tables(catalog, tables),
        namespaces=tuple(move.namespaces),
        left=(),
        notes=_notes_forth(catalog, lake),
        seconds=time.monotonic() - began,
    )


def _move_back(catalog: Catalog, move: MoveBack, lake: LakeSettings, began: float, *, dry_run: bool) -> CatalogMove:
    if dry_run:
        move.plan()
        guards.refuse_changed(catalog)
    else:
        with holding_leases_in_turn(catalog, guards.resources(catalog), patience=PATIENCE) as leases:
            move.carry_out(leases)
    found = {name: ("taken over", at.metadata_location, at.is_view) for name, at in move.pointers.items()}
    return CatalogMove(
        source=shown(lake.identity),
        target=shown(None),
        moved=not dry_run,
        tables=_tables(catalog, found),
        namespaces=(),
        left=tuple(map(str, move.left)),
        notes=_notes_back(lake),
        seconds=time.monotonic() - began,
    )


def _nothing(identity: str | None) -> CatalogMove:
    notes = () if identity is not None else ("Take the section [lake] out of headrace.toml.",)
    return CatalogMove(shown(identity), shown(identity), False, (), (), (), notes, 0.0)


def _tables(catalog: Catalog, found: Mapping[TableName, tuple[str, str, bool]]) -> tuple[MovedTable, ...]:
    owners = owners_of(catalog)

    def kind(name: TableName, is_view: bool) -> str:
        if (owner := owners.get(name)) is not None:
            return owner.part or ("mirror" if owner.source is not None else "stream table")
        return "view" if is_view else "table"

    return tuple(
        MovedTable(str(name), kind(name, is_view), action, location)
        for name, (action, location, is_view) in sorted(found.items())
    )


def _notes_forth(catalog: Catalog, lake: LakeSettings) -> tuple[str, ...]:
    notes = (
        f"Everything that reads or writes these tables must use {shown(lake.identity)} from now on. Programs that "
        "still go through the catalog's own database see what was there, and what they write is lost to all others.",
        "Files stay where they are. In the server never drop a table of this project with PURGE.",
    )
    with catalog.reading() as reader:
        untested = bool(reader.sources() or reader.sinks())
    return (*notes, "Database sources and sinks are not tested with a REST catalog yet.") if untested else notes


def _notes_back(lake: LakeSettings) -> tuple[str, ...]:
    return (
        "Take the section [lake] out of headrace.toml now.",
        f"The tables stay registered in {shown(lake.identity)} as they are at this moment: readers there see them grow "
        "old, and find files missing once `headrace maintain` has expired snapshots. Drop them there, without PURGE, "
        "which would delete files that this project uses; and keep the server from expiring snapshots or removing "
        "orphan files of them until then.",
        "Everything that writes the tables that stream tables read must use the catalog's own database from now on.",
    )
