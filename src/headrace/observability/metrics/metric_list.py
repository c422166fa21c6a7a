"""Every metric: name, kind, labels and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus knows it.

    Args:
        name: Its name; a counter's samples end in `_total`, which this does not.
        kind: How it behaves.
        text: What it says.
        labels: Names of its labels, in the order of values.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Upper bounds of durations in seconds: from a cycle in which little changed to a load of hours."""

BUILD = Metric("headrace_build_info", "gauge", "1, with the version.", ("version",))
CATALOG_UP = Metric("headrace_catalog_up", "gauge", "Whether the catalog database answered: 1 or 0.")
CATALOG_LATENCY = Metric("headrace_catalog_latency_seconds", "gauge", "Time of one small query of the catalog.")
SCHEDULERS = Metric("headrace_schedulers", "gauge", "Processes that run schedules of this project.")

DURATION = Metric(
    "headrace_refresh_duration_seconds", "histogram", "Time of refreshes that ended well.", ("table", "mode")
)
ROWS = Metric("headrace_refresh_rows", "counter", "Rows that refreshes inserted and deleted.", ("table", "change"))
FAILURES = Metric("headrace_refresh_failures", "counter", "Refreshes that failed.", ("table", "code"))
JOBS = Metric("headrace_refresh_spark_jobs", "counter", "Spark jobs of refreshes.", ("table",))

LAG = Metric(
    "headrace_table_lag_seconds", "gauge", "Age of the oldest change that the table does not reflect.", ("table",)
)
TARGET = Metric("headrace_table_target_lag_seconds", "gauge", "The lag that it is to keep.", ("table",))
WITHIN = Metric(
    "headrace_table_within_target_ratio", "gauge", "Share of the last day with the lag within target.", ("table",)
)
STATUS = Metric("headrace_table_status", "gauge", "1 for the status that the table has.", ("table", "status"))
HELD = Metric("headrace_table_held", "gauge", "Whether something keeps it from being refreshed.", ("table",))
FAILING = Metric("headrace_table_failing", "gauge", "Whether its last refresh failed.", ("table",))
TABLE_ROWS = Metric("headrace_table_rows", "gauge", "Rows of the table.", ("table",))
SKIPPED = Metric("headrace_table_skipped_rows", "gauge", "Changed rows that somebody had skipped.", ("table",))
REFRESHED = Metric("headrace_table_last_refresh_timestamp_seconds", "gauge", "When its last refresh ended.", ("table",))

RUNNING = Metric("headrace_refreshes_running", "gauge", "Stream tables that somebody refreshes or maintains now.")
SLOTS = Metric("headrace_scheduler_slots", "gauge", "Refreshes that this process may run at once.")
SLOTS_USED = Metric("headrace_scheduler_slots_used", "gauge", "Refreshes that it runs.")
QUEUED = Metric("headrace_scheduler_queued", "gauge", "Refreshes that wait for a slot, or for each other.")
POOL = Metric("headrace_pool_slots", "gauge", "Refreshes of a pool that this process may run at once.", ("pool",))
POOL_USED = Metric("headrace_pool_slots_used", "gauge", "Refreshes of a pool that it runs.", ("pool",))

SOURCE_UP = Metric("headrace_source_up", "gauge", "Whether a database source answered and is landed.", ("source",))
SOURCE_LANDED = Metric(
    "headrace_source_landed_timestamp_seconds", "gauge", "When something was last landed.", ("source",)
)
SOURCE_LAG = Metric(
    "headrace_source_lag_seconds", "gauge", "Age of the oldest transaction that is not landed.", ("source",)
)
SOURCE_LAG_BYTES = Metric("headrace_source_lag_bytes", "gauge", "Write-ahead log since what is landed.", ("source",))
SOURCE_KEPT = Metric("headrace_source_kept_bytes", "gauge", "What the server keeps for the source.", ("source",))
SOURCE_SAFE = Metric("headrace_source_safe_bytes", "gauge", "How much more until its slot may be lost.", ("source",))
SOURCE_RUNS_OUT = Metric(
    "headrace_source_runs_out_seconds", "gauge", "How long its slot lasts if nothing more is landed.", ("source",)
)
SOURCE_WAITING = Metric(
    "headrace_source_waiting_rows",
    "gauge",
    "Captured rows that are not landed, of each table 100,000 at most.",
    ("source",),
)

SINK_BEHIND = Metric(
    "headrace_sink_behind_seconds", "gauge", "Age of the oldest version that the target does not have.", ("sink",)
)
SINK_FAILURES = Metric("headrace_sink_failures", "gauge", "Writes in a row that failed.", ("sink",))
SINK_ROWS = Metric("headrace_sink_rows", "gauge", "Rows of the target by what was written.", ("sink",))
SINK_WRITTEN = Metric("headrace_sink_written_timestamp_seconds", "gauge", "When something was last written.", ("sink",))

METRICS: tuple[Metric, ...] = (
    BUILD,
    CATALOG_UP,
    CATALOG_LATENCY,
    SCHEDULERS,
    DURATION,
    ROWS,
    FAILURES,
    JOBS,
    LAG,
    TARGET,
    WITHIN,
    STATUS,
    HELD,
    FAILING,
    TABLE_ROWS,
    SKIPPED,
    REFRESHED,
    RUNNING,
    SLOTS,
    SLOTS_USED,
    QUEUED,
    POOL,
    POOL_USED,
    SOURCE_UP,
    SOURCE_LANDED,
    SOURCE_LAG,
    SOURCE_LAG_BYTES,
    SOURCE_KEPT,
    SOURCE_SAFE,
    SOURCE_RUNS_OUT,
    SOURCE_WAITING,
    SINK_BEHIND,
    SINK_FAILURES,
    SINK_ROWS,
    SINK_WRITTEN,
)
"""All of them, in the order they are told."""
