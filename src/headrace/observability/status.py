"""Status, history and graph from the catalog alone: no Spark, a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.catalog import Catalog, ForeignWrite, HistoryEntry, LastRefresh, Outcome, Status, StreamTable, Version
from headrace.catalog.state.reader import Reader
from headrace.definitions.details import refusals_of
from headrace.frontier import Frontier
from headrace.names import CLOCK, TableName
from headrace.reasons import FullReason
from headrace.results.refresh_results import HistoryRow, Mode, StreamTableInfo

TIME = "the time"
"""The name of what a table with a moving filter is behind when only time has moved."""


@dataclass(frozen=True, slots=True)
class Standings:
    """The standing of stream tables, as read from one state of the catalog.

    Args:
        tables: All stream tables.
        wanted: Those that are asked for.
        frontiers: Frontiers of those that were published.
        newest: Their newest versions, and those of other relations.
        moved: Versions of sources as just observed.
        last: How the newest refreshes ended.
        changed: Stored tables that somebody else wrote to.
    """

    tables: Mapping[TableName, StreamTable]
    wanted: Sequence[TableName]
    frontiers: Mapping[TableName, Frontier]
    newest: Mapping[TableName, Version]
    moved: Mapping[TableName, int]
    last: Mapping[TableName, LastRefresh]
    changed: Mapping[TableName, ForeignWrite]

    def lines(
        self, more: Callable[[TableName], Mapping[str, Any]] = lambda _: {}, *, eventual: bool
    ) -> tuple[StreamTableInfo, ...]:
        """Return one line per stream table.

        Args:
            more: Gives fields of a stream table's line that do not follow from this.
            eventual: Whether tables of one publication may be shown one after the other.
        """
        consumers: dict[TableName, list[str]] = {}
        for name, table in self.tables.items():
            for source in table.sources:
                consumers.setdefault(source, []).append(str(name))
        versions = {n: v.version for n, v in self.newest.items()} | dict(self.moved)
        return tuple(
            _info(
                self.tables[n],
                self.frontiers.get(n, Frontier()),
                versions,
                self.newest.get(n),
                self.last.get(n),
                consumers.get(n, []),
                [self.changed[stored] for stored in self.tables[n].stored if stored in self.changed],
                eventual,
                more(n),
            )
            for n in self.wanted
        )


def standings(reader: Reader, moved: Mapping[TableName, int], names: Iterable[TableName] | None) -> Standings:
    """Read where stream tables stand.

    Args:
        reader: One state of the catalog.
        moved: Versions of sources as just observed.
        names: Only these; all when None.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`.
    """
    tables = {t.name: t for t in reader.stream_tables()}
    return Standings(
        tables,
        [reader.stream_table(n).name for n in names] if names is not None else list(tables),
        reader.frontiers(),
        reader.newest_versions(),
        moved,
        reader.last_refreshes(),
        {w.name: w for w in reader.foreign_writes()},
    )


def _info(
    table: StreamTable,
    frontier: Frontier,
    versions: Mapping[TableName, int],
    newest: Version | None,
    last: LastRefresh | None,
    consumers: list[str],
    changed: list[ForeignWrite],
    eventual: bool,
    more: Mapping[str, Any],
) -> StreamTableInfo:
    refusals, seen = refusals_of(table.details), frontier.versions
    failed = last is not None and last.outcome is Outcome.FAILED
    return StreamTableInfo(
        name=str(table.name),
        status=Status.DAMAGED if changed else table.status,
        refresh_mode=table.refresh_mode,
        schedule=table.schedule,
        incremental=not refusals,
        refusals=refusals,
        behind=tuple(TIME if s == CLOCK else str(s) for s in table.sources if seen.get(s) != versions.get(s)),
        frontier=frontier.as_dict(),
        version=newest.version if newest else None,
        rows=newest.row_count if newest else None,
        consumers=tuple(sorted(consumers)),
        last_refresh=last.finished_at if last else None,
        last_mode=Mode(last.mode) if last else None,
        last_reason=FullReason(last.reason) if last and last.reason else None,
        last_seconds=last.seconds if last else None,
        last_error=last.error_message if last and failed else None,
        stopped_reason=table.stopped_reason,
        properties=dict(table.options),
        damage="; ".join(f"{write.name} {write.what}" for write in changed) or None,
        eventual=eventual,
        **more,
    )


def history(catalog: Catalog, name: TableName | None, limit: int | None) -> tuple[HistoryRow, ...]:
    """Return past refreshes, newest first."""
    return tuple(_row(entry) for entry in catalog.history(name, limit))


def _row(entry: HistoryEntry) -> HistoryRow:
    jobs = entry.metrics.get("jobs")
    return HistoryRow(
        name=str(entry.stream),
        started_at=entry.started_at,
        seconds=entry.seconds,
        mode=Mode(entry.mode),
        reason=FullReason(entry.reason) if entry.reason else None,
        detail=entry.reason_detail,
        ok=entry.outcome is Outcome.OK,
        rows_inserted=entry.rows_inserted,
        rows_deleted=entry.rows_deleted,
        rows_after=entry.rows_after,
        stages=dict(entry.stages),
        frontier=entry.frontier.as_dict() if entry.frontier is not None else {},
        error_code=entry.error_code,
        error_message=entry.error_message,
        publication=entry.publication_id,
        jobs=int(jobs) if jobs is not None else None,
        epoch=entry.epoch,
    )
