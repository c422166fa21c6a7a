"""Tells where deployments stand: loaded, converged, failed, and by how much they are behind."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog import (
    AutoDeployment,
    Catalog,
    Green,
    Json,
    Outcome,
    Role,
    Status,
    StreamTable,
    resource_of,
)
from headrace.definitions.details import from_json
from headrace.deploy.blue_settings import altered
from headrace.deploy.deployment_results import GreenInfo, LoadProgress
from headrace.deploy.deployment_state import DeploymentState, reading_deployments
from headrace.deploy.lag_rows import lag_rows
from headrace.deploy.objections import Objection, against_promotion, against_roll_back
from headrace.deploy.promotion_options import PromotionOptions
from headrace.deploy.readiness import left_readers
from headrace.deploy.root_versions import behind, behind_seconds, within_threshold
from headrace.deploy.unattended.promotion_conditions import parse_conditions, texts_of
from headrace.deploy.unattended.watch import watch_from_json
from headrace.errors import HeadraceError
from headrace.graph.dag import Dag
from headrace.lake.metadata import TableMeta
from headrace.names import LAKE, STAGING, TableName
from headrace.refresh.cut.cut import metadata
from headrace.refresh.groups.grouping import Defaults

NO_DEFAULTS = Defaults()


def green_infos(
    catalog: Catalog,
    chosen: Sequence[Green],
    now: dt.datetime,
    lag_threshold: dt.timedelta | None = None,
    *,
    defaults: Defaults = NO_DEFAULTS,
) -> tuple[GreenInfo, ...]:
    """Return where second generations stand; reads the catalog only.

    Args:
        catalog: The catalog.
        chosen: The generations.
        now: The time.
        lag_threshold: A green that is behind for no longer counts as converged; None for what the conditions say on
            which its deployment promotes itself.
        defaults: What the project wants of diamonds.
    """
    with reading_deployments(catalog) as state:
        reader = state.reader
        status = _Status(
            state,
            frozenset(reader.gates()),
            reader.held_resources(),
            {d.name: d for d in reader.auto_deployments()},
            reader.green_loads(),
            now,
            lag_threshold,
            defaults,
        )
        there = [g for g in chosen if g.name in state.tables]  # others were dropped just now
        there = [g for g in there if g.role is not Role.EXCHANGE or g.original in state.tables]
        objections = {d: status.objections(d) for d in {g.deployment for g in there}}
        return tuple(status.info(g, objections[g.deployment]) for g in there)


@dataclass(frozen=True, slots=True)
class _Status:
    """The catalog at one moment, and what is asked of it."""

    state: DeploymentState
    gated: frozenset[TableName]
    leased: frozenset[str]
    auto: Mapping[str, AutoDeployment]
    loads: Mapping[TableName, Json]
    now: dt.datetime
    lag_threshold: dt.timedelta | None
    defaults: Defaults

    def objections(self, deployment: str) -> tuple[Objection, ...]:
        """Return what stands against promoting what was not, and against taking back what was."""
        of = {g.name: g for g in self.state.greens if g.deployment == deployment}
        members = [of[name] for name in Dag(self.state.reads).order(of)]
        found: list[Objection] = []
        if chosen := [g for g in members if g.promoted_at is None]:
            how = replace(self._conditions(deployment), lag_threshold=self._threshold(deployment))
            found += against_promotion(chosen, self.state, self.now, how, self.defaults)
        if former := [g for g in members if g.promoted_at is not None]:
            found += against_roll_back(former, self.state, self.now)
        return tuple(found)

    def info(self, green: Green, objections: Sequence[Objection]) -> GreenInfo:
        """Return where one generation stands, given what stands against exchanging its deployment."""
        tables, newest, reader = self.state.tables, self.state.newest, self.state.reader
        table, public = tables[green.name], tables.get(green.original)
        roots, others = self.state.roots.of(green.name), self.state.roots.of(green.original)
        lag = behind(roots, others)
        loaded = self.state.is_loaded(green.name)
        seconds = self._lag_seconds(lag, green)
        leaves = green.role is Role.DROP and green.public
        converged = leaves or (
            loaded and within_threshold(lag, seconds, self._threshold(green.deployment).total_seconds())
        )
        blocked = [o for o in objections if green.original in o.tables and not o.error.retryable]
        state, detail = self._state(green, table, loaded=loaded, converged=converged, blocked=bool(blocked))
        rows, rows_public = (newest[n].row_count if n in newest else None for n in (green.name, green.original))
        entries = reader.history(green.name, 200)
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
            lag_rows={str(root): rows for root, rows in lag_rows(reader, roots, others, lag).items()},
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
            blocked_by=tuple(o.words for o in blocked),
        )

    def _conditions(self, deployment: str) -> PromotionOptions:
        """Return how a deployment promotes itself; as by hand where it does not."""
        auto = self.auto.get(deployment)
        return PromotionOptions() if auto is None else parse_conditions(texts_of(auto.conditions)).options

    def _threshold(self, deployment: str) -> dt.timedelta:
        """Return for how long its greens may be behind and be converged all the same."""
        return self._conditions(deployment).lag_threshold if self.lag_threshold is None else self.lag_threshold

    def _progress(self, green: Green, rows_public: int | None) -> LoadProgress | None:
        """Return how far its load is that is under way, or was cut short; None where none has begun."""
        if (noted := self.loads.get(green.name)) is None:
            return None
        begun = dt.datetime.fromisoformat(noted["begun"])
        under_way = resource_of(green.name) in self.leased
        ended = self.now if under_way else dt.datetime.fromisoformat(noted["noted"])
        staged = self.state.reader.pointers(STAGING, [green.name])
        metas = [_readable(pointer.metadata_location) for pointer in staged.values()]
        rows = [None if meta is None else meta.row_count for meta in metas]
        return LoadProgress(
            stage=noted["stage"] if under_way else None,
            stages=noted["ended"],
            seconds=round((ended - begun).total_seconds(), 1),
            rows_written=next(iter(rows), None),
            rows_public=rows_public,
        )

    def _state(
        self, green: Green, table: StreamTable, *, loaded: bool, converged: bool, blocked: bool
    ) -> tuple[str, str | None]:
        known, ready = self.state.scheduled(green.name), "blocked" if blocked else "converged"
        if green.promoted_at is not None:
            return "promoted", None
        if green.role is Role.DROP:
            along = [g for g in self.state.greens if g.deployment == green.deployment and g.promoted_at is None]
            still = ", ".join(b.reader for b in left_readers(along, self.state.reads) if b.source == str(green.name))
            return ready, f"still read by {still}" if still else None
        if table.status is Status.STOPPED:
            return "failed", table.stopped_reason
        if known.error_code is not None:
            return "failed", f"{known.error_code}: {known.error_message}"
        if not loaded:
            under_way = resource_of(green.name) in self.leased
            last = next(iter(self.state.reader.history(green.name, 1)), None)
            if last is not None and last.outcome is Outcome.FAILED and not under_way:
                return "failed", f"{last.error_code}: {last.error_message}"
            return "loading", "being loaded now" if under_way else "waits for its first load"
        return (ready, None) if converged else ("catching up", None)

    def _held(self, table: StreamTable, roots: Mapping[TableName, object]) -> tuple[str, ...]:
        known = self.state.scheduled(table.name)
        found = [f"closed gate on {root}" for root in sorted(roots) if root in self.gated]
        if known.held_up is not None:
            found.append(known.held_up)
        if known.skipped_at is not None:
            found.append(f"{known.skipped_rows:,} changed rows were skipped")
        return tuple(found)

    def _lag_seconds(self, lag: Mapping[TableName, int], green: Green) -> float | None:
        """Return since when the oldest version is missing that the public table reflects."""
        if green.name not in self.state.newest:
            return None
        seconds = behind_seconds(self.state.reader, self.state.roots.of(green.name), lag, self.now)
        return None if seconds is None else round(seconds, 1)

    def _bytes(self, table: StreamTable) -> int | None:
        metas = [_readable(p.metadata_location) for p in self.state.reader.pointers(LAKE, table.stored).values()]
        sizes = [_size(meta) for meta in metas]
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)


def _readable(location: str) -> TableMeta | None:
    """Return a table's metadata; None where the file cannot be read."""
    try:
        return metadata(location)
    except HeadraceError:
        return None


def _size(meta: TableMeta | None) -> int | None:
    if meta is None:
        return None
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
