"""Writes OpenLineage's run events, with the facets that its own library defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.event_v2 import Run as RunOfEvent
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    symlinks_dataset,
)
from openlineage.client.generated.base import RunFacet

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, DatabaseSource, Pointer, Sink, StreamTable
from headrace.definitions.column_lineage import Lineages
from headrace.definitions.details import Details, from_json
from headrace.errors import HeadraceError
from headrace.events import SinkFailed, SinkWritten
from headrace.lake.metadata import TableMeta, read_metadata
from headrace.names import CLOCK, TableName
from headrace.observability.exporting.openlineage_run import Run, moment
from headrace.observability.exporting.refresh_delivery import Refresh
from headrace.observability.table_lineage import lineage_in
from headrace.results.lineage_results import ColumnOrigin

PRODUCER = "https://pypi.org/project/headrace/"


class OpenLineageEvents:
    """Writes run events.

    Args:
        namespace: Of jobs and tables.
        catalog: Where definitions and versions are.
        catalogs: Catalogs that the session knows.
        version: Headrace's own.
    """

    def __init__(self, namespace: str, catalog: Catalog, catalogs: frozenset[str], version: str) -> None:
        self._namespace = namespace
        self._catalog = catalog
        self._version = version
        self._lineages = Lineages(catalogs)

    def cycle(self, kind: str, run: Run, at: int) -> Any:
        """Return the event of a cycle.

        Args:
            kind: START or COMPLETE.
            run: The cycle.
            at: When, in nanoseconds since 1970.
        """
        return self._event(kind, run, at, {}, {"jobType": _job_type("CYCLE")}, [], [])

    def refresh(self, kind: str, run: Run, parent: Run | None, refresh: Refresh, stored: StreamTable, at: int) -> Any:
        """Return the event of a refresh.

        Args:
            kind: START, COMPLETE, FAIL or ABORT.
            run: The refresh.
            parent: Its cycle; None where it is alone.
            refresh: What is known of it.
            stored: The stream table.
            at: When, in nanoseconds since 1970.
        """
        details = from_json(stored.details)
        facets = {"headrace_refresh": _refresh_facet(refresh), **self._around(parent, refresh.code, refresh.message)}
        job = {"jobType": _job_type("STREAM_TABLE"), "sql": sql_job.SQLJobFacet(stored.query, dialect="spark")}
        inputs, output = self._datasets(kind, refresh, stored, details)
        return self._event(kind, run, at, facets, job, inputs, [output])

    def landing(
        self, kind: str, run: Run, parent: Run | None, refresh: Refresh, source: DatabaseSource | None, at: int
    ) -> Any:
        """Return the event of a landing: tables of a database in, mirrors out.

        Args:
            kind: START, COMPLETE, FAIL or ABORT.
            run: The landing.
            parent: Its cycle; None where it is alone.
            refresh: What is known of it.
            source: The source; None where it is gone.
            at: When, in nanoseconds since 1970.
        """
        mirrors = [mirror.name for mirror in source.mirrors] if source is not None else []
        read = _tables_of(source.options) if source is not None else []
        facets = {"headrace_refresh": _refresh_facet(refresh), **self._around(parent, refresh.code, refresh.message)}
        outputs = [OutputDataset(self._namespace, str(name), facets=facets) for name, facets in self._stored(mirrors)]
        inputs = [InputDataset(*name) for name in read]
        return self._event(kind, run, at, facets, {"jobType": _job_type("LANDING")}, inputs, outputs)

    def write(
        self, kind: str, run: Run, parent: Run | None, told: SinkWritten | SinkFailed, sink: Sink, at: int
    ) -> Any:
        """Return the event of a write of a sink: a stream table in, a table of a database out.

        Args:
            kind: START, COMPLETE or FAIL.
            run: The write.
            parent: Its cycle; None where it is alone.
            told: What was told of it.
            sink: The sink.
            at: When, in nanoseconds since 1970.
        """
        code, message = (told.code, told.message) if isinstance(told, SinkFailed) and kind == "FAIL" else ("", "")
        inputs = [
            InputDataset(self._namespace, str(name), facets=facets) for name, facets in self._stored([sink.stream])
        ]
        rows = told.inserted if isinstance(told, SinkWritten) and kind == "COMPLETE" else None
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        written = {} if rows is None else {"outputStatistics": statistics}
        table = ".".join(map(str, sink.options.get("table", ())))
        where = _database(str(sink.options.get("url", "")))
        outputs = [OutputDataset(where[0], f"{where[1]}.{table}", outputFacets=written)] if where and table else []
        facets = self._around(parent, code, message)
        return self._event(kind, run, at, facets, {"jobType": _job_type("SINK")}, inputs, outputs)

    def _around(self, parent: Run | None, code: str, message: str) -> dict[str, Any]:
        """Return the facets of a run that tell of its cycle, and of why it failed."""
        facets: dict[str, Any] = {}
        if parent is not None:
            of = parent_run.Job(self._namespace, parent.job)
            facets["parent"] = parent_run.ParentRunFacet(parent_run.Run(parent.id), of)
        if code:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(f"[{code}] {message}", "SQL")
        return facets

    def _stored(self, names: Sequence[TableName]) -> list[tuple[TableName, dict[str, Any]]]:
        """Return tables of the lake with what is known of each."""
        with self._catalog.reading() as reader:
            pointers = reader.pointers(names=names) if names else {}
            versions = {name: reader.newest_version(name) for name in names}
        metas = {name: _meta(pointers.get(name)) for name in names}
        return [
            (
                name,
                dict(_facets(meta.columns if meta is not None else (), meta, found.snapshot_id if found else None)),
            )
            for name, meta, found in ((name, metas[name], versions[name]) for name in names)
        ]

    def _event(
        self, kind: str, run: Run, at: int, run_facets: dict[str, Any], job_facets: dict[str, Any], *datasets: Any
    ) -> Any:
        engine = processing_engine_run.ProcessingEngineRunFacet(self._version, "Headrace")
        return RunEvent(
            eventTime=moment(at),
            producer=PRODUCER,
            run=RunOfEvent(run.id, {"processing_engine": engine, **run_facets}),
            job=Job(self._namespace, run.job, job_facets),
            eventType=RunState[kind],
            inputs=datasets[0],
            outputs=datasets[1],
        )

    # ---- datasets

    def _datasets(self, kind: str, refresh: Refresh, stored: StreamTable, details: Details) -> tuple[list[Any], Any]:
        complete = kind == "COMPLETE"
        uses = [use for use in details.sources if use.name != CLOCK]
        names = [stored.name, *(use.name for use in uses)]
        with self._catalog.reading() as reader:
            pointers = reader.pointers(names=names)
            entry = next(iter(reader.history(stored.name, 1)), None) if complete else None
            reached = entry.frontier if entry is not None else None
            wanted = {name: v for name, v in reached.items() if name in names} if reached is not None else {}
            versions = reader.versions_at(wanted)
            own = reader.newest_version(stored.name) if complete else None
        inputs = []
        for use in uses:
            meta = _meta(pointers.get(use.name))
            columns = meta.columns if meta is not None else use.columns
            version = versions[use.name].snapshot_id if use.name in versions else None
            facets = dict(_facets(columns, meta, version))
            inputs.append(InputDataset(self._namespace, str(use.name), facets=facets))
        meta = _meta(pointers.get(stored.name))
        facets = dict(_facets(details.output, meta, own.snapshot_id if own is not None else None))
        lineage = self._column_lineage(stored)
        facets |= {"columnLineage": lineage} if lineage is not None else {}
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=refresh.rows_inserted)
        written = {"outputStatistics": statistics} if complete else {}
        return inputs, OutputDataset(self._namespace, str(stored.name), facets=facets, outputFacets=written)

    def _column_lineage(self, stored: StreamTable) -> Any:
        """Return the facet; None where lineage is not known."""
        found = lineage_in(self._lineages, stored, {}, base=False)
        if found.unknown:
            return None
        fields = {
            column.name: column_lineage_dataset.Fields(inputFields=self._inputs(column.origins))
            for column in found.columns
            if column.origins
        }
        return column_lineage_dataset.ColumnLineageDatasetFacet(fields=fields, dataset=self._inputs(found.rows))

    def _inputs(self, origins: Iterable[ColumnOrigin]) -> list[Any]:
        """Return columns of tables, each once with all ways in which it takes part."""
        ways: dict[tuple[str, str], list[Any]] = {}
        for origin in origins:
            kind = "DIRECT" if origin.direct else "INDIRECT"
            way = column_lineage_dataset.Transformation(kind, origin.influence.value)
            ways.setdefault((origin.table, origin.column), []).append(way)
        return [
            column_lineage_dataset.InputField(self._namespace, table, column, transformations=how)
            for (table, column), how in ways.items()
        ]


def _facets(columns: Iterable[Column], meta: TableMeta | None, snapshot: int | None) -> Iterator[tuple[str, Any]]:
    """Yield what is known of a table: schema, version, and under which name others know it."""
    fields = [
        schema_dataset.SchemaDatasetFacetFields(column.name, column.type, ordinal_position=i)
        for i, column in enumerate(columns, 1)
    ]
    yield "schema", schema_dataset.SchemaDatasetFacet(fields)
    if snapshot is not None:
        yield "version", dataset_version_dataset.DatasetVersionDatasetFacet(str(snapshot))
    if meta is not None:
        scheme, _, path = meta.location.rpartition("://") if "://" in meta.location else ("file", "", meta.location)
        authority, slash, rest = path.partition("/")
        known = (f"{scheme}://{authority}", rest) if scheme != "file" else ("file", f"{authority}{slash}{rest}")
        yield "symlinks", symlinks_dataset.SymlinksDatasetFacet([symlinks_dataset.Identifier(*known, "LOCATION")])


def _meta(pointer: Pointer | None) -> TableMeta | None:
    """Return a table's metadata; None where it cannot be read here."""
    if pointer is None or pointer.is_view:
        return None
    try:
        return read_metadata(pointer.metadata_location)
    except HeadraceError:
        return None


def _tables_of(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the tables that a source captures, on each of its servers.

    They are named as OpenLineage names those of PostgreSQL.
    """
    nodes = options.get("nodes")
    urls = [str(options.get("url", ""))] if nodes is None else [str(of.get("url", "")) for of in nodes.values()]
    tables = options.get("tables")
    found = [".".join(map(str, table)) for table in tables.values()] if isinstance(tables, Mapping) else []
    return [(where[0], f"{where[1]}.{table}") for where in map(_database, urls) if where for table in found]


def _database(url: str) -> tuple[str, str] | None:
    """Return a server's namespace and the database, without user and password.

    None where the connection string names no host.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme.startswith("postgres") or not host or not parts.path.strip("/"):
        return None
    return f"postgres://{host}:{port or 5432}", parts.path.strip("/")


def _refresh_facet(refresh: Refresh) -> Any:
    """Return what only Headrace says of a refresh."""
    told = {
        "mode": refresh.mode or None,
        "reason": refresh.reason,
        "rowsInserted": refresh.rows_inserted if refresh.end and not refresh.code else None,
        "rowsDeleted": refresh.rows_deleted if refresh.end and not refresh.code else None,
        "errorCode": refresh.code or None,
    }
    return RunFacet().with_additional_properties(**{key: value for key, value in told.items() if value is not None})


def _job_type(kind: str) -> Any:
    return job_type_job.JobTypeJobFacet("BATCH", "HEADRACE", kind)
