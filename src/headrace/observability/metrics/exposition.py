"""Writes a project's state and totals in Prometheus' text format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.catalog import SourceStatus, Status
from headrace.observability.metrics import metric_list as m
from headrace.observability.metrics.metric_list import Metric
from headrace.observability.metrics.project_state import ProjectState
from headrace.observability.metrics.refresh_totals import RefreshTotals

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

Sample = tuple[tuple[str, ...], float | int | None]
"""Values of the labels, and a value; None where it is not known, which leaves the sample out."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

FIGURES = {
    "lag_seconds": m.SOURCE_LAG,
    "lag_bytes": m.SOURCE_LAG_BYTES,
    "kept_bytes": m.SOURCE_KEPT,
    "safe_bytes": m.SOURCE_SAFE,
    "runs_out_seconds": m.SOURCE_RUNS_OUT,
    "waiting_rows": m.SOURCE_WAITING,
}
"""Metrics of the figures that a source's kind may give of its server, by figure."""


def text_of(state: ProjectState, totals: RefreshTotals) -> bytes:
    """Return all metrics."""
    from prometheus_client.exposition import generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry

    class Told(Collector):
        def collect(self) -> Iterable[Family]:
            return families(state, totals)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Told())
    return generate_latest(registry)


def families(state: ProjectState, totals: RefreshTotals) -> Iterator[Family]:
    """Yield the metrics, each with its samples."""
    samples = _samples(state, totals)
    for metric in m.METRICS:
        if metric is m.DURATION:
            yield _durations(metric, totals)
        else:
            yield _family(metric, samples.get(metric.name, ()))


def _family(metric: Metric, samples: Iterable[Sample]) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.text, labels=metric.labels)
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, float(value))
    return family


def _durations(metric: Metric, totals: RefreshTotals) -> Family:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
    for labels, durations in sorted(totals.durations.items()):
        family.add_metric(labels, durations.cumulative(), durations.total)
    return family


def _samples(state: ProjectState, totals: RefreshTotals) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}

    def put(metric: Metric, samples: Iterable[Sample]) -> None:
        found[metric.name] = list(samples)

    put(m.BUILD, [((state.version,), 1)])
    put(m.CATALOG_UP, [((), state.error is None)])
    put(m.CATALOG_LATENCY, [((), state.latency)])
    put(m.ROWS, sorted(totals.rows.items()))
    put(m.FAILURES, sorted(totals.failures.items()))
    put(m.JOBS, sorted(totals.jobs.items()))
    if state.error is None:
        put(m.SCHEDULERS, [((), len(state.schedulers))])
        put(m.RUNNING, [((), len(state.running))])
        found |= _of_tables(state) | _of_sources(state) | _of_sinks(state)
    found |= _of_load(state)
    return found


def _of_load(state: ProjectState) -> dict[str, list[Sample]]:
    if (load := state.load) is None:
        return {}
    return {
        m.SLOTS.name: [((), load.slots)],
        m.SLOTS_USED.name: [((), load.running)],
        m.QUEUED.name: [((), load.queued)],
        m.POOL.name: _by(load.quotas),
        m.POOL_USED.name: _by({**dict.fromkeys(load.quotas, 0), **load.pools}),
    }


def _of_tables(state: ProjectState) -> dict[str, list[Sample]]:
    tables = [((table.name,), table) for table in state.tables]
    return {
        m.LAG.name: [(of, t.lag) for of, t in tables],
        m.TARGET.name: [(of, t.target) for of, t in tables],
        m.WITHIN.name: [(of, t.within_target) for of, t in tables],
        m.STATUS.name: [((t.name, s.value), t.status is s) for t in state.tables for s in Status],
        m.HELD.name: [(of, t.held_up is not None) for of, t in tables],
        m.FAILING.name: [(of, t.last_error is not None) for of, t in tables],
        m.TABLE_ROWS.name: [(of, t.rows) for of, t in tables],
        m.SKIPPED.name: [(of, t.skipped_rows) for of, t in tables],
        m.REFRESHED.name: [(of, _seconds(t.last_refresh)) for of, t in tables],
    }


def _of_sources(state: ProjectState) -> dict[str, list[Sample]]:
    names = [source.name for source in state.sources]
    told = {name: state.figures[name] for name in names if name in state.figures}
    active = {source.name for source in state.sources if source.status is SourceStatus.ACTIVE}
    found: dict[str, list[Sample]] = {
        m.SOURCE_UP.name: [((name,), said is not None and name in active) for name, said in told.items()],
        m.SOURCE_LANDED.name: [((s.name,), _seconds(s.landed_at)) for s in state.sources],
    }
    for figure, metric in FIGURES.items():
        found[metric.name] = [((name,), _number((said or {}).get(figure))) for name, said in told.items()]
    return found


def _of_sinks(state: ProjectState) -> dict[str, list[Sample]]:
    sinks = [((sink.name,), sink) for sink in state.sinks]
    return {
        m.SINK_BEHIND.name: [(of, s.behind_seconds) for of, s in sinks],
        m.SINK_FAILURES.name: [(of, s.failures) for of, s in sinks],
        m.SINK_ROWS.name: [(of, s.rows) for of, s in sinks],
        m.SINK_WRITTEN.name: [(of, _seconds(s.written_at)) for of, s in sinks],
    }


def _by(counts: Mapping[str, int]) -> list[Sample]:
    return [((name,), count) for name, count in sorted(counts.items())]


def _seconds(moment: dt.datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
