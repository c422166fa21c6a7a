"""Creates, alters and drops stream tables; manages functions and declared keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.api.project_handle import ProjectHandle
from headrace.api.refresh_mode import parse_mode
from headrace.events import FuseResolved, Notice
from headrace.functions import declare
from headrace.schedule import parse_schedule
from headrace.schedule.options import KEYS, parse_options

if TYPE_CHECKING:
    from headrace.api.declared_keys import KeyInfo
    from headrace.results.refresh_results import RefreshResult


class TableVerbs(ProjectHandle):
    """Verbs about definitions."""

    def create_stream_table(
        self,
        name: str,
        query: str,
        schedule: str | None = None,
        refresh_mode: str = "AUTO",
        initialize: bool = True,
        if_not_exists: bool = False,
        or_replace: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> RefreshResult | None:
        """Create a stream table and load it.

        Args:
            name: `namespace.table`; resolves in `lake`.
            query: The defining query, any deterministic or (then refreshed FULL) other Spark SQL query.
            schedule: How old it may become (`1 minute`, `1h30m`), cron (`0 6 * * * Europe/Berlin`), `ON CHANGE`,
                `DOWNSTREAM` or `MANUAL`; None is `DOWNSTREAM`.
            refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
            initialize: Load it now; otherwise it stays empty until its first refresh.
            if_not_exists: Do nothing when it exists.
            or_replace: Give an existing one this definition; readers see the old contents until the new are there. A
                blown fuse is resolved by that: the new ones are computed from what the sources are now.
            options: How it is scheduled: `tier`, `pool`, `timeout`, `diamond_consistency`, `diamond_schedule_policy`,
                `refresh_group`, `fuse_ceiling`, `fuse_factor`; and what becomes of `ties`. None keeps those of the one
                that is replaced.

        Returns:
            The first load, or None when nothing was loaded.

        Raises:
            HeadraceError: The definition is wrong or loading failed; nothing was created then.
        """
        from headrace.refresh.definition.table_spec import TableSpec

        mode = parse_mode(refresh_mode)
        age = None if schedule is None else parse_schedule(schedule).text
        if options is not None:
            options = {key.lower(): text for key, text in options.items()}
            parse_options(options)
        spec = TableSpec(self._name(name), query, age, mode, initialize, if_not_exists, or_replace, options)
        blown = self._blown() if or_replace else frozenset()
        loaded = self._engine().creator.create(spec)
        if blown:
            self._redefined(blown - self._blown())
        return loaded

    def alter_stream_table(
        self,
        name: str,
        *,
        schedule: str | None = None,
        clear_schedule: bool = False,
        refresh_mode: str | None = None,
        query: str | None = None,
        options: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change a stream table; what is None stays.

        Args:
            name: The stream table.
            schedule: New schedule.
            clear_schedule: Remove the schedule.
            refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
            query: New query; contents and definition change together. A blown fuse is resolved by that.
            options: Options to change, by key; None takes one back. Those that are not named stay.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `INVALID_SCHEDULE`, or what is wrong with the query.
            Unsupported: `NOT_MAINTAINABLE` for DIFFERENTIAL over a query that cannot be.
        """
        from headrace.refresh.definition.define import require_differential
        from headrace.refresh.gather_facts import details_of

        full_name = self._name(name)
        table = self._catalog.stream_table(full_name)
        mode = parse_mode(refresh_mode) if refresh_mode is not None else None
        schedule = None if schedule is None else parse_schedule(schedule).text
        changed = None if options is None else _changed(table.options, options)
        if changed is not None:
            parse_options(changed)
        if query is not None:
            kept_mode = (mode or table.refresh_mode).value
            kept_schedule = None if clear_schedule else schedule or table.schedule
            self.create_stream_table(str(full_name), query, kept_schedule, kept_mode, or_replace=True, options=changed)
            return
        if mode is not None:
            require_differential(details_of(table), mode)
        self._catalog.alter_stream_table(
            full_name, refresh_mode=mode, schedule=schedule, clear_schedule=clear_schedule, options=changed
        )
        if options is not None and any(key.lower().startswith("fuse_") for key in options):
            self._catalog.mend_fuse(full_name)

    def drop_stream_table(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> tuple[str, ...]:
        """Drop a stream table.

        Args:
            name: The stream table.
            if_exists: No error when there is none.
            cascade: Drop its consumers too.

        Returns:
            The names that were dropped.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`, `HAS_CONSUMERS`.
        """
        dropped = self._engine().creator.drop(self._name(name), if_exists=if_exists, cascade=cascade)
        return tuple(str(n) for n in dropped)

    def register_function(
        self, name: str, call: Callable[..., Any], *, returns: str, deterministic: bool = True
    ) -> None:
        """Let queries of this process call a Python function.

        Functions of every process are declared in `functions.py`.

        Args:
            name: Its name in SQL.
            call: The function; takes one argument for each of the call, None for NULL.
            returns: The type it returns, as Spark SQL writes it, or one of PySpark's types.
            deterministic: Whether equal arguments always give equal results; queries that call one for which this is
                not so are recomputed.

        Raises:
            UserError: `FUNCTION_INVALID`.
        """
        self._lazy.register(declare(name, call, returns, deterministic))

    def declare_key(self, source: str, columns: str | Iterable[str], *, check: bool = True) -> KeyInfo:
        """Say that no two rows of a source agree in some columns, NULL being a value like any other.

        Refreshes then leave out work: no DISTINCT over rows that are unique, nobody looks for a second partner. Nothing
        enforces it: should it not hold one day, stream tables that rest on it may be wrong, and `verify` says so.
        Stream tables that read the source are defined and loaded again by their next refresh.

        Args:
            source: A table that stream tables read, or will read; no stream table.
            columns: One column or several.
            check: Look whether it holds now.

        Returns:
            The key, and which stream tables are recomputed for it.

        Raises:
            UserError: `KEY_VIOLATED`, `COLUMN_NOT_FOUND`, `TABLE_NOT_FOUND`; `INVALID_OPTION` for a stream table.
        """
        from headrace.api.declared_keys import declare

        wanted = (columns,) if isinstance(columns, str) else tuple(columns)
        return declare(self._catalog, self._lazy, self._heads(), self._name(source), wanted, check=check)

    def drop_key(self, source: str, columns: str | Iterable[str]) -> None:
        """Remove a declared key.

        Stream tables that rest on it are defined and loaded again by their next refresh.

        Raises:
            UserError: `KEY_NOT_DECLARED`.
        """
        from headrace.api.declared_keys import drop

        drop(self._catalog, self._name(source), (columns,) if isinstance(columns, str) else tuple(columns))

    def keys(self) -> tuple[KeyInfo, ...]:
        """Return declared keys of sources; reads the catalog only."""
        from headrace.api.declared_keys import key_infos

        return key_infos(self._catalog)

    def _blown(self) -> frozenset[str]:
        from headrace.api.safeguards.fuses import blown_fuses

        return frozenset(fuse.name for fuse in blown_fuses(self._catalog))

    def _redefined(self, names: Iterable[str]) -> None:
        """Say of stream tables that their new definitions went past blown fuses."""
        from headrace.api.safeguards.fuses import went_past

        for name in sorted(names):
            self.events.emit(Notice(went_past(name)))
            self._decided(FuseResolved(name, "redefine"))


def _changed(present: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    """Return options with some set, and others taken back."""
    asked = {key.lower(): text for key, text in options.items()}
    parse_options(dict.fromkeys(asked.keys() - set(KEYS), ""))  # says which are none
    return {key: text for key, text in {**present, **asked}.items() if text is not None}
