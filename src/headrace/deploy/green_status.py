"""Where deployments stand: loaded, converged, failed, and by how much they are behind."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.catalog import (
    AutoDeployment,
    Catalog,
    Green,
    Json,
    Outcome,
    Role,
    SchedulingState,
    Status,
    StreamTable,
    Version,
    resource_of,
)
from headrace.catalog.state.reader import Reader
from headrace.definitions.details import from_json
from headrace.deploy.blue_settings import altered
from headrace.deploy.deployment_results import GreenInfo, LoadProgress
from headrace.deploy.readiness import left_readers
from headrace.deploy.root_versions import RootVersions, behind, behind_seconds, within_threshold
from headrace.deploy.unattended.promotion_conditions import parse_conditions, texts_of
from headrace.deploy.unattended.watch import watch_from_json
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, STAGING, TableName
from headrace.refresh.cut.cut import metadata


def green_infos(
    catalog: Catalog, chosen: Sequence[Green], now: dt.datetime, lag_threshold: dt.timedelta | None = None
) -> tuple[GreenInfo, ...]:
    """Return where second generations stand; reads the catalog only.

    Args:
        catalog: The catalog.
        chosen: The generations.
        now: The time.
        lag_threshold: A green that is behind for no longer counts as converged; None for what the conditions say on
            which its deployment promotes itself.
    """
    scheduling = catalog.scheduling_states()
    with catalog.reading() as reader:
        state = _DeploymentState(
            reader,
            reader.greens(),
            reader.dependencies(),
            {t.name: t for t in reader.stream_tables()},
            reader.newest_versions(),
            scheduling,
            frozenset(reader.gates()),
            frozenset(x.resource for x in reader.leases() if x.owner is not None and x.expires_at > now),
            RootVersions(reader),
            {d.name: d for d in reader.auto_deployments()},
            reader.green_loads(),
            now,
            lag_threshold,
        )
        there = [g for g in chosen if g.name in state.tables]  # others were dropped just now
        return tuple(state.info(g) for g in there if g.role is not Role.EXCHANGE or g.original in state.tables)


@dataclass(frozen=True, slots=True)
class _DeploymentState:
    """The catalog at one moment."""

    reader: Reader
    greens: Sequence[Green]
    reads: Mapping[TableName, Sequence[TableName]]
    tables: Mapping[TableName, StreamTable]
    newest: Mapping[TableName, Version]
    scheduling: Mapping[TableName, SchedulingState]
    gated: frozenset[TableName]
    leased: frozenset[str]
    roots: RootVersions
    auto: Mapping[str, AutoDeployment]
    loads: Mapping[TableName, Json]
    now: dt.datetime
    lag_threshold: dt.timedelta | None

    def info(self, green: Green) -> GreenInfo:
        """Return where one generation stands."""
        table, public = self.tables[green.name], self.tables.get(green.original)
        roots = self.roots.of(green.name)
        lag = behind(roots, self.roots.of(green.original))
        loaded = green.name in self.newest and table.status is not Status.NEW
        seconds = self._lag_seconds(lag, green)
        leaves = green.role is Role.DROP and green.public
        converged = leaves or (loaded and within_threshold(lag, seconds, self._threshold(green)))
        state, detail = self._state(green, table, loaded=loaded, converged=converged)
        rows, rows_public = (
            self.newest[n].row_count if n in self.newest else None for n in (green.name, green.original)
        )
        entries = self.reader.history(green.name, 200)
        auto = self.auto.get(green.deployment)
        watch = None if green.watch is None else watch_from_json(green.watch)
        return GreenInfo(
            name=str(green.original),
            green=str(green.name),
            deployment=green.deployment,
            state=state,
            detail=detail,
            converged=converged and state != "failed",
            lag_versions={str(root): number for root, number in lag.items()},
            lag_seconds=seconds,
            rows=rows,
            rows_public=rows_public,
            changes=() if public is None or public is table else _changes(table, public),
            altered=altered(green.blue, public) if public is not None and green.blue else (),
            held_by=self._held(table, roots),
            seconds=round(sum(e.seconds for e in entries), 3),
            refreshes=sum(e.outcome is Outcome.OK for e in entries),
            progress=None if loaded else self._progress(green, rows_public),
            bytes=self._bytes(table),
            keep_until=green.keep_until,
            auto_promote=None if auto is None else texts_of(auto.conditions),
            refused=None
            if auto is None or auto.refused_code is None
            else f"{auto.refused_code}: {auto.refused_reason}",
            watched_until=None if watch is None else watch.until,
            on_trouble=None if watch is None else watch.on_trouble,
            role=green.role.value,
        )

    def _threshold(self, green: Green) -> float:
        """Return for how many seconds it may be behind and be converged all the same."""
        if self.lag_threshold is not None:
            return self.lag_threshold.total_seconds()
        auto = self.auto.get(green.deployment)
        if auto is None:
            return 0.0
        return parse_conditions(texts_of(auto.conditions)).options.lag_threshold.total_seconds()

    def _progress(self, green: Green, rows_public: int | None) -> LoadProgress | None:
        """Return how far its load is that is under way, or was cut short; None where none has begun."""
        if (noted := self.loads.get(green.name)) is None:
            return None
        begun = dt.datetime.fromisoformat(noted["begun"])
        under_way = resource_of(green.name) in self.leased
        ended = self.now if under_way else dt.datetime.fromisoformat(noted["noted"])
        staged = self.reader.pointers(STAGING, [green.name])
        rows = [metadata(pointer.metadata_location).row_count for pointer in staged.values()]
        return LoadProgress(
            stage=noted["stage"] if under_way else None,
            stages=noted["ended"],
            seconds=round((ended - begun).total_seconds(), 1),
            rows_written=next(iter(rows), None),
            rows_public=rows_public,
        )

    def _state(self, green: Green, table: StreamTable, *, loaded: bool, converged: bool) -> tuple[str, str | None]:
        known = self.scheduling.get(green.name, SchedulingState())
        if green.promoted_at is not None:
            return "promoted", None
        if green.role is Role.DROP:
            along = [g for g in self.greens if g.deployment == green.deployment and g.promoted_at is None]
            still = ", ".join(b.reader for b in left_readers(along, self.reads) if b.source == str(green.name))
            return "converged", f"still read by {still}" if still else None
        if table.status is Status.STOPPED:
            return "failed", table.stopped_reason
        if known.error_code is not None:
            return "failed", f"{known.error_code}: {known.error_message}"
        if not loaded:
            under_way = resource_of(green.name) in self.leased
            last = next(iter(self.reader.history(green.name, 1)), None)
            if last is not None and last.outcome is Outcome.FAILED and not under_way:
                return "failed", f"{last.error_code}: {last.error_message}"
            return "loading", "being loaded now" if under_way else "waits for its first load"
        return ("converged", None) if converged else ("catching up", None)

    def _held(self, table: StreamTable, roots: Mapping[TableName, object]) -> tuple[str, ...]:
        known = self.scheduling.get(table.name, SchedulingState())
        found = [f"closed gate on {root}" for root in sorted(roots) if root in self.gated]
        if known.held_up is not None:
            found.append(known.held_up)
        if known.skipped_at is not None:
            found.append(f"{known.skipped_rows:,} changed rows were skipped")
        return tuple(found)

    def _lag_seconds(self, lag: Mapping[TableName, int], green: Green) -> float | None:
        """Return since when the oldest version is missing that the public table reflects."""
        if green.name not in self.newest:
            return None
        seconds = behind_seconds(self.reader, self.roots.of(green.name), lag, self.now)
        return None if seconds is None else round(seconds, 1)

    def _bytes(self, table: StreamTable) -> int | None:
        metas = [metadata(p.metadata_location) for p in self.reader.pointers(LAKE, table.stored).values()]
        sizes = [_size(meta) for meta in metas]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)


def _size(meta: TableMeta) -> int | None:
    if meta.current is None:
        return 0
    known = meta.current.summary.get("total-files-size")
    return None if known is None else int(known)


def _changes(green: StreamTable, public: StreamTable) -> tuple[str, ...]:
    """Return in words what differs between two definitions."""
    ours, theirs = from_json(green.details), from_json(public.details)
    read = {ours.redirects.get(use.name, use.name) for use in theirs.sources}
    now, then = [c.name for c in theirs.output], [c.name for c in ours.output]
    found = [f"+ column {name}" for name in then if name not in now]
    found += [f"- column {name}" for name in now if name not in then]
    kinds = {c.name: c.type for c in theirs.output}
    found += [
        f"column {c.name}: {kinds[c.name]} -> {c.type}" for c in ours.output if kinds.get(c.name, c.type) != c.type
    ]
    found += [f"+ source {name}" for name in sorted({use.name for use in ours.sources} - read)]
    found += [f"- source {name}" for name in sorted(read - {use.name for use in ours.sources})]
    if ours.query != theirs.query and not found:
        found.append("query")
    for word, one, other in (
        ("schedule", public.schedule, green.schedule),
        ("refresh mode", public.refresh_mode.value, green.refresh_mode.value),
        ("properties", dict(public.options), dict(green.options)),
    ):
        if one != other:
            found.append(f"{word}: {one} -> {other}")
    return tuple(found)
