"""An open project: what the verbs of every subject stand on."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from headrace import config
from headrace.api.session import LazySpark
from headrace.catalog import Catalog
from headrace.events import Event, Events, fields_of, kind_of
from headrace.lake.files.file_access import reach_by
from headrace.lakes.lake_server import LakeServer
from headrace.lakes.lake_settings import LakeSettings
from headrace.lakes.storage_settings import warehouses
from headrace.names import TableName, qualify, split_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.api.database_sinks import Sinks
    from headrace.api.database_sources import Sources
    from headrace.definitions.compiled_views import CompiledViews
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.definition.create import Creator
    from headrace.refresh.groups.grouping import Grouping
    from headrace.refresh.refresher import Refresher


class Engine(NamedTuple):
    """Compiles, refreshes and defines; made at first use, because it imports the compiler.

    Args:
        views: Compiled views of this process.
        refresher: Refreshes stream tables.
        creator: Creates, replaces and drops them.
    """

    views: CompiledViews
    refresher: Refresher
    creator: Creator


Names = list[str] | tuple[str, ...]
"""Several names; a type that a single `str` does not fit."""


class ProjectHandle:
    """An open project: its catalog, its Spark session, its engine; and how names are read.

    The verbs of `Headrace` are in one class per subject over this one.

    Args:
        settings: Where everything is.
        spark: A session to use; one is started at first use otherwise.
        create: Make the catalog if there is none.
        start_spark: Gives the session at first use, in place of starting one; whoever gives it also ends it.

    Attributes:
        settings: Where everything is.
        events: Tells what happens; `events.subscribe(listener)`.
    """

    def __init__(
        self,
        settings: config.Settings,
        *,
        spark: SparkSession | None = None,
        create: bool = True,
        start_spark: Callable[[Events], SparkSession] | None = None,
    ) -> None:
        self.settings = settings
        self.events = Events()
        known = warehouses(settings.warehouse, settings.storage, settings.spark_options)
        for warehouse, properties in known.items():
            reach_by(warehouse, properties)
        self._catalog = Catalog.open(
            settings.catalog_url, events=self.events, create=create, lake=_open_lake(settings.lake)
        )
        try:
            self._catalog.bind_lake(None if settings.lake is None else settings.lake.identity)
        except BaseException:
            self._catalog.close()
            raise
        self._lazy = LazySpark(settings, self.events, spark, start_spark)
        self._parts: Engine | None = None
        self._hooks = ExitStack()
        if settings.openlineage is not None or settings.traces.wanted(os.environ):
            from headrace.observability.exporting import open_exporters

            catalogs = self._lazy.catalogs()
            self._hooks.enter_context(open_exporters(settings, self._catalog, self.events, catalogs))

    def close(self) -> None:
        """Close the catalog and stop the Spark session, if this object started it."""
        self._hooks.close()
        self._catalog.close()
        if not self._lazy.owned and self._parts is not None:
            self._parts.refresher.changes.clear()
        self._lazy.close()

    def cancel_jobs(self) -> None:
        """Cancel the Spark jobs that this project runs, in any thread; they raise `CANCELLED` there.

        Jobs of others in the same Spark application go on.
        """
        self._lazy.cancel_jobs()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spark(self) -> SparkSession:
        """Return the Spark session; the first use starts it."""
        return self._lazy.session()

    def _engine(self) -> Engine:
        if self._parts is None:
            from headrace.api.schedules.project_defaults import defaults_of
            from headrace.definitions.compiled_views import CompiledViews
            from headrace.optimizer.pass_names import check_disabled
            from headrace.refresh.definition.create import Creator
            from headrace.refresh.refresher import Refresher

            plans = CompiledViews(self._lazy, check_disabled(self.settings.disabled_passes))
            defaults = defaults_of(self.settings)
            refresher = Refresher(self._catalog, self._lazy, plans, self.events, defaults=defaults)
            creator = Creator(
                self._catalog, self._lazy, plans, refresher, self.settings.warehouse, self.settings.format_version
            )
            self._parts = Engine(plans, refresher, creator)
        return self._parts

    @cached_property
    def sources(self) -> Sources:
        """Return databases whose tables are mirrored in the lake."""
        from headrace.api.database_sources import Sources

        return Sources(self._catalog, self._lazy, self.events, self.settings, lambda: self._engine().refresher.changes)

    @cached_property
    def sinks(self) -> Sinks:
        """Return databases that stream tables are written to."""
        from headrace.api.database_sinks import Sinks

        return Sinks(self._catalog, self.events, self.settings, self._name, lambda: self._engine().creator.tables)

    def _name(self, text: str) -> TableName:
        return self._names([text])[0]

    def _names(self, texts: Iterable[str]) -> list[TableName]:
        """Return names in full, by one look at the session's namespace and catalogs."""
        namespace, catalogs = self._lazy.namespace(), self._lazy.catalogs()
        return [qualify(split_identifier(text), namespace, catalogs) for text in texts]

    def _several(self, names: str | Names | None) -> list[TableName]:
        if names is None:
            return [t.name for t in self._catalog.stream_tables()]
        wanted = self._names([names] if isinstance(names, str) else names)
        for name in wanted:
            self._catalog.stream_table(name)  # one that there is not is told of with what may be meant
        return wanted

    def _grouping(self) -> Grouping:
        from headrace.api.schedules.project_defaults import defaults_of
        from headrace.refresh.groups.grouping import grouping_of

        return grouping_of(self._catalog, defaults_of(self.settings))

    def _heads(self) -> Cut:
        return self._engine().refresher.heads()

    def _decided(self, *events: Event) -> None:
        """Tell what somebody decided, also those who only read the log of events."""
        now = dt.datetime.now(dt.UTC)
        self._catalog.write_events([(now, kind_of(event), fields_of(event)) for event in events])


def _open_lake(settings: LakeSettings | None) -> LakeServer | None:
    if settings is None:
        return None
    from headrace.lake.rest.open_lake import open_lake

    return open_lake(settings)
