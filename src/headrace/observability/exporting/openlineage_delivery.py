"""Sends OpenLineage's run events: of refreshes, landings and writes of sinks.

Each is a run, with the cycle as its parent.

OpenLineage's client, its facets and its transports do the work. What an event says beyond the refresh itself (columns,
versions, lineage) is read from the catalog on this thread, after the refresh.
"""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import Any

from headrace.catalog import Catalog, StreamTable
from headrace.config import Settings
from headrace.config.exporter_settings import OpenLineageSettings
from headrace.events import Events, SinkFailed, SinkWritten
from headrace.names import TableName, qualify, split_identifier
from headrace.observability.exporting.openlineage_run import Run
from headrace.observability.exporting.refresh_delivery import Refresh, RefreshDelivery, own_version
from headrace.results.refresh_results import Mode

LANDINGS = ("LAND", "SNAPSHOT")
"""Modes of what is no refresh of a stream table."""

RETRIES = {"total": 2, "read": 2, "connect": 2, "backoff_factor": 0.3, "status_forcelist": [500, 502, 503, 504]}
"""Retries of an event over HTTP; what waits meanwhile is limited."""


class OpenLineageDelivery(RefreshDelivery):
    """Sends run events while it is open.

    Args:
        settings: The project's.
        asked: Where events go.
        catalog: Where definitions and versions are.
        events: What is listened to.
        catalogs: Catalogs that the session knows.
    """

    def __init__(
        self,
        settings: Settings,
        asked: OpenLineageSettings,
        catalog: Catalog,
        events: Events,
        catalogs: frozenset[str],
    ) -> None:
        super().__init__(events, "headrace-openlineage", "OpenLineage's run events")
        self._asked = asked
        self._catalog = catalog
        self._catalogs = catalogs
        self._namespace = asked.namespace or settings.root.name
        self._cycle: Run | None = None
        self._runs: dict[str, Run] = {}

    def cycle_began(self, at: int, by: str) -> None:
        """Remember the cycle; it is sent with its first refresh, so that looking for work is no run."""
        self._cycle = None

    def began(self, refresh: Refresh) -> None:
        """Send the start of a refresh or landing, and before the first one that of the cycle."""
        landed = refresh.mode in LANDINGS
        stored = self._stream_table(refresh)
        if (stored is None and not landed) or refresh.mode == Mode.NO_CHANGE:
            return
        run = self._runs[refresh.table] = Run(self._new_id(), f"source {refresh.table}" if landed else refresh.table)
        self._begin_cycle(refresh.start)
        self._tell("START", run, refresh, stored, refresh.start)

    def ended(self, refresh: Refresh) -> None:
        """Send how a refresh or landing has ended."""
        run, stored = self._runs.pop(refresh.table, None), self._stream_table(refresh)
        if (stored is None and run is None) or (run is None and (refresh.mode == Mode.NO_CHANGE or refresh.abandoned)):
            return
        kind = "FAIL" if refresh.code else "ABORT" if refresh.abandoned else "COMPLETE"
        run = run or Run(self._new_id(), refresh.table)
        self._tell(kind, run, refresh, stored, refresh.end or refresh.start)

    def wrote(self, sink: SinkWritten | SinkFailed, at: int) -> None:
        """Send that a sink was written, or was not."""
        with self._catalog.reading() as reader:
            found = next((each for each in reader.sinks() if each.name == sink.sink), None)
        if found is None:
            return
        begun = at if isinstance(sink, SinkFailed) else at - round(sink.seconds * 1e9)
        self._begin_cycle(begun)
        run, kind = Run(self._new_id(), f"sink {sink.sink}"), "FAIL" if isinstance(sink, SinkFailed) else "COMPLETE"
        for what, when in (("START", begun), (kind, at)):
            self._send(self._facets.write(what, run, self._cycle, sink, found, when))

    def _begin_cycle(self, at: int) -> None:
        if self._cycles and self._cycle is None:
            self._cycle = Run(self._new_id(), "cycle")
            self._send(self._facets.cycle("START", self._cycle, at))

    def _tell(self, kind: str, run: Run, refresh: Refresh, stored: StreamTable | None, at: int) -> None:
        if stored is not None:
            self._send(self._facets.refresh(kind, run, self._cycle, refresh, stored, at))
            return
        with self._catalog.reading() as reader:
            source = next((each for each in reader.sources() if each.name == refresh.table), None)
        self._send(self._facets.landing(kind, run, self._cycle, refresh, source, at))

    def cycle_ended(self, at: int) -> None:
        """Send the end of the cycle."""
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            self._send(self._facets.cycle("COMPLETE", cycle, at))

    def end(self) -> None:
        """Stop listening, wait a while for what waits, and close the connection."""
        over = self._ended.is_set()
        super().end()
        client = self.__dict__.get("_client")
        if client is not None and not over and not self._thread.is_alive():
            client.close(1.0)

    def _send(self, event: Any) -> None:
        self._client.emit(event)
        self.arrived()

    @cached_property
    def _client(self) -> Any:
        from openlineage.client import OpenLineageClient

        logging.getLogger("openlineage").addHandler(logging.NullHandler())  # what goes wrong is told as a notice
        transport = dict(self._asked.transport)
        if self._asked.url:
            transport = {"type": "http", "url": self._asked.url, "timeout": 5.0, "retry": RETRIES}
        if self._asked.url and self._asked.api_key_env:
            key = os.environ.get(self._asked.api_key_env, "")
            transport["auth"] = {"type": "api_key", "apiKey": key}
        return OpenLineageClient(config={"transport": transport} if transport else None)

    @cached_property
    def _facets(self) -> Any:
        from headrace.observability.exporting.openlineage_events import OpenLineageEvents

        return OpenLineageEvents(self._namespace, self._catalog, self._catalogs, own_version())

    def _new_id(self) -> str:
        from openlineage.client.uuid import generate_new_uuid

        return str(generate_new_uuid())

    def _stream_table(self, refresh: Refresh) -> StreamTable | None:
        """Return the stream table; None for a source that is landed, or a table that is gone."""
        if refresh.mode in LANDINGS:
            return None
        return self._catalog.find_stream_table(self._name(refresh.table)) if "." in refresh.table else None

    def _name(self, text: str) -> TableName:
        return qualify(split_identifier(text), (), self._catalogs)
