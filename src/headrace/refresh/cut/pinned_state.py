"""Reading several tables as of one published state.

Publishing swaps pointers atomically, but a query engine loads table after table and may straddle a publication.
Pinning takes all pointers in one catalog query first, then reads those snapshots.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from headrace.catalog import Catalog
from headrace.definitions.user_text import bind_text
from headrace.errors import UserError
from headrace.lake.metadata import TableMeta
from headrace.lake.views import Describe, as_declared, read_view
from headrace.names import LAKE, STAGING, TableName
from headrace.refresh.cut.cut import metadata
from headrace.sources.lakehouse.changes_sql import rows_sql


@dataclass(frozen=True, slots=True)
class Pin:
    """One table at one snapshot.

    Args:
        meta: The table's metadata, which knows the snapshot.
        snapshot: The snapshot; None for an empty table.
    """

    meta: TableMeta
    snapshot: int | None


class PinnedState:
    """Pointers of all tables in `lake`, taken in one query.

    Args:
        catalog: The catalog.
        when: Read the state as of this time, or of this publication; the newest when None.
        describe: To find what the texts of views return now.

    Raises:
        UserError: `PUBLICATION_NOT_FOUND`.
    """

    def __init__(
        self,
        catalog: Catalog,
        when: dt.datetime | int | None = None,
        describe: Describe = as_declared,
    ) -> None:
        if isinstance(when, dt.datetime) and when.tzinfo is None:
            raise UserError(
                "INVALID_OPTION", f"{when} has no time zone.", hint="Pass an aware time, such as datetime.now(UTC)."
            )
        self._when = when
        self._catalog = catalog
        self._describe = describe
        catalog.look_at_known()
        with catalog.reading() as reader:
            self._pointers = reader.pointers(LAKE, None)
            self._versions = reader.versions_as_of(when) if when is not None else {}
            self._streams = frozenset(t.name for t in reader.stream_tables())
            self._time = reader.published_at(when) if isinstance(when, int) else when

    def expression(
        self, name: TableName, catalogs: frozenset[str] = frozenset({LAKE}), *, case_sensitive: bool = False
    ) -> str:
        """Return the table expression that reads a relation in this state.

        Args:
            name: The relation.
            catalogs: Catalogs the session knows.
            case_sensitive: Whether names of common table expressions differ by case there.

        Raises:
            UserError: `TABLE_NOT_FOUND`, `HISTORY_EXPIRED`, or `NOT_PINNABLE` for a table outside `lake`.
        """
        if name.catalog != LAKE:
            raise UserError(
                "NOT_PINNABLE",
                f"{name} is in catalog {name.catalog}; only tables in {LAKE} are read pinned.",
                hint="Read it with VERSION AS OF in plain Spark SQL.",
            )
        pointer = self._pointers.get(name) or self._catalog.pointers(LAKE, [name]).get(name)
        if pointer is None:
            raise UserError("TABLE_NOT_FOUND", f"Table {name} does not exist.")
        if pointer.is_view:
            view = read_view(pointer.metadata_location)
            text = bind_text(
                view.sql,
                namespace=view.namespace,
                catalogs=catalogs | {STAGING},
                views={},
                bind=lambda inner: self.expression(inner, catalogs, case_sensitive=case_sensitive),
                default=view.catalog_among(catalogs),
                case_sensitive=case_sensitive,
            )
            return f"({view.shown(text, name.table, self._describe)})"
        pin = self._pin(name, metadata(pointer.metadata_location))
        return rows_sql(name, pin.meta, pin.snapshot)

    def _pin(self, name: TableName, meta: TableMeta) -> Pin:
        if self._when is None:
            return Pin(meta, meta.current_snapshot_id)
        version = self._versions.get(name)
        if name in self._streams or version is not None:
            snapshot = version.snapshot_id if version else None
            recreated = version is not None and version.table_uuid not in (None, meta.uuid)
            if recreated or (snapshot is not None and snapshot not in meta.snapshots):
                raise expired(name)
            if version is None:
                raise expired(name)
            return Pin(meta, snapshot)
        found = meta.snapshot_at(self._time) if self._time else None
        return Pin(meta, found.id if found else None)

    def sql(
        self, query: str, namespace: tuple[str, ...], catalogs: frozenset[str], *, case_sensitive: bool = False
    ) -> str:
        """Return a query with every table name replaced by its pinned expression."""
        return bind_text(
            query,
            namespace=namespace,
            catalogs=catalogs,
            views={},
            bind=lambda name: self.expression(name, catalogs, case_sensitive=case_sensitive),
            case_sensitive=case_sensitive,
        )


def expired(name: TableName) -> UserError:
    """Return the error for a past state that is no longer kept."""
    return UserError(
        "HISTORY_EXPIRED",
        f"{name} can no longer be read as of then.",
        hint="Keep snapshots longer: headrace maintain --older-than. Of a mirror that changes by the second, ask for "
        "the state at a full minute or hour.",
    )
