"""The pointers of a publication: what `lake` and `staging` point at before and after it.

The state afterwards is worked out in memory, as a dict of rows, and only the difference is written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from headrace.catalog.publishing import pointers, published_pointers
from headrace.catalog.publishing.pointer_changes import PointerChanges, foreign_writer, made_by_another
from headrace.catalog.publishing.pointers import PointerRow, key_of
from headrace.catalog.publishing.publication import Publication, Rename, Swap, invalid
from headrace.catalog.publishing.retired_tables import RETIRED, retirement, take_back_folders
from headrace.catalog.publishing.staging_namespaces import remove_empty
from headrace.catalog.records import folder_of
from headrace.errors import EnvironmentFault
from headrace.lakes.lake_server import Key, LakeMove
from headrace.names import LAKE, STAGING

Rows = dict[tuple[str, Key], PointerRow]


@dataclass(slots=True)
class _State:
    """Rows of `iceberg_tables`, and the pointers Headrace published last."""

    rows: Rows
    ours: dict[Key, str]


def known_pointers(connection: Connection, publication: Publication) -> dict[Key, str]:
    """Return the pointers Headrace last published under a publication's names."""
    return published_pointers.read(connection, keys) if (keys := _keys(publication)) else {}


@dataclass(frozen=True, slots=True)
class PointerPlan:
    """The pointers of a publication, worked out and not written yet."""

    _before: _State
    _after: _State

    @property
    def lake_moves(self) -> tuple[LakeMove, ...]:
        """Return what becomes of the tables of the lake."""
        keys = {key for catalog, key in self._before.rows.keys() | self._after.rows.keys() if catalog == LAKE}
        moves = (LakeMove(key, _location(self._before, key), _location(self._after, key)) for key in sorted(keys))
        return tuple(move for move in moves if move.before != move.after)

    def relocate(self, shown: Mapping[Key, str]) -> None:
        """Take over metadata files that a catalog server has written, in place of the staged ones."""
        for key, location in shown.items():
            row = PointerRow(location, _location(self._before, key), "TABLE")
            self._after.rows |= {(LAKE, key): row, (STAGING, key): row}
            self._after.ours[key] = location

    def write(self, connection: Connection, publication: Publication, now: dt.datetime) -> None:
        """Write what differs.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER`.
        """
        before, after = self._before, self._after
        take_back_folders(connection, _shown_anew(before, after))
        _write_rows(connection, before.rows, after.rows)
        published_pointers.write(connection, before.ours, after.ours)
        left = {key[0] for catalog, key in before.rows.keys() - after.rows.keys() if catalog == STAGING}
        if left:
            remove_empty(connection, left, publication.leases, now)


def plan_pointers(
    connection: Connection,
    publication: Publication,
    ours: dict[Key, str],
    now: dt.datetime,
    staged: Mapping[Key, str] | None = None,
) -> PointerPlan | None:
    """Work out a publication's deletes, renames and swaps; retire unused tables.

    Args:
        connection: The transaction.
        publication: What is published.
        ours: What `known_pointers` said before any stream table was dropped.
        now: The time.
        staged: What was staged when the publication was decided, in place of what is staged now.

    Returns:
        The plan; None where no pointer is concerned.

    Raises:
        EnvironmentFault: `FOREIGN_WRITER`, `STAGING_CHANGED`.
        InternalError: `PUBLICATION_INVALID`.
    """
    keys = _keys(publication)
    if not keys:
        return None
    before = _State(pointers.lock(connection, (LAKE, STAGING), keys), ours)
    after = _State(dict(before.rows), dict(before.ours))
    former = {key_of(rename.new): key_of(rename.old) for rename in publication.renames}
    for key, location in (staged or {}).items():  # was staged under the names of before
        after.rows[STAGING, former.get(key, key)] = PointerRow(location, None, "TABLE")
    for name in publication.deletes:
        _delete(after, key_of(name))
    _rename(after, publication.renames)
    for swap in publication.swaps:
        _swap(after, swap)
    _retire(before, after, now)
    return PointerPlan(before, after)


def _location(state: _State, key: Key) -> str | None:
    row = state.rows.get((LAKE, key))
    return None if row is None else row.metadata_location


def _keys(publication: Publication) -> set[Key]:
    names = [*publication.deletes, *(s.name for s in publication.swaps)]
    for rename in publication.renames:
        names += [rename.old, rename.new]
    return {key_of(name) for name in names}


def _delete(state: _State, key: Key) -> None:
    state.rows.pop((STAGING, key), None)
    if state.ours.pop(key, None) is not None:  # else somebody else made it where nothing was published yet
        state.rows.pop((LAKE, key), None)


def _retire(before: _State, after: _State, now: dt.datetime) -> None:
    """Remember tables that Headrace published and that are no longer shown under any name."""
    shown = {folder_of(row.metadata_location) for (catalog, _), row in after.rows.items() if catalog == LAKE}
    for (catalog, key), row in before.rows.items():
        own = before.ours.get(key) == row.metadata_location  # what somebody else put there is not ours to remove
        if catalog == LAKE and own and folder_of(row.metadata_location) not in shown:
            place, record = retirement(now, key, row)
            after.rows[RETIRED, place] = record


def _shown_anew(before: _State, after: _State) -> set[str]:
    """Return the folders of tables that are shown under a name which showed none, or another."""
    shown = {(key, folder_of(row.metadata_location)) for (catalog, key), row in after.rows.items() if catalog == LAKE}
    shown -= {(key, folder_of(row.metadata_location)) for (catalog, key), row in before.rows.items() if catalog == LAKE}
    return {folder for _, folder in shown}


def _rename(state: _State, renames: tuple[Rename, ...]) -> None:
    lifted = {}
    for rename in renames:
        old = key_of(rename.old)
        if (LAKE, old) not in state.rows:
            raise invalid(f"{rename.old} cannot be renamed: it is not in the lake.")
        rows = {c: row for c in (LAKE, STAGING) if (row := state.rows.pop((c, old), None)) is not None}
        lifted[rename.new] = (rows, state.ours.pop(old, None))
    for name, (rows, location) in lifted.items():
        new = key_of(name)
        if any((c, new) in state.rows for c in (LAKE, STAGING)):
            raise invalid(f"{name} exists, so nothing can be renamed to it.")
        state.rows.update({(c, new): row for c, row in rows.items()})
        if location is not None:
            state.ours[new] = location


def _swap(state: _State, swap: Swap) -> None:
    key = key_of(swap.name)
    staging, lake = state.rows.get((STAGING, key)), state.rows.get((LAKE, key))
    if staging is None:
        raise invalid(f"Nothing is staged for {swap.name}.")
    if swap.staged is not None and staging.metadata_location != swap.staged:
        raise _staging_changed(swap)
    found, ours = None if lake is None else lake.metadata_location, state.ours.get(key)
    if ours is None and found is not None:
        raise made_by_another(swap.name)
    if found != swap.expected:
        raise foreign_writer([swap.name], f"The refresh started from {swap.expected}; the lake points at {found} now.")
    if ours != found and not swap.overwrite_foreign:
        raise foreign_writer([swap.name], f"Headrace published {ours} last; the lake points at {found}.")
    if staging.metadata_location != found:
        state.rows[LAKE, key] = PointerRow(staging.metadata_location, found, staging.iceberg_type)
    state.ours[key] = staging.metadata_location


def _write_rows(
    connection: Connection, before: Mapping[tuple[str, Key], PointerRow], after: Mapping[tuple[str, Key], PointerRow]
) -> None:
    changes = PointerChanges()
    for place in before.keys() - after.keys():
        changes.delete(*place)
    for place, row in after.items():
        if before.get(place) != row:
            changes.put(*place, row, replacing=before.get(place))
    changes.apply(connection)


def _staging_changed(swap: Swap) -> EnvironmentFault:
    return EnvironmentFault(
        "STAGING_CHANGED",
        f"What was staged for {swap.name} is not what this refresh wrote; nothing was published.",
        detail="Another process reset it, or wrote to the staging catalog.",
        hint="Refresh again.",
        retryable=True,
    )
