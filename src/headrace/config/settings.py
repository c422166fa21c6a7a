"""Everything that is set for a project, as one value with defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.addresses import Address
from headrace.config.exporter_settings import OpenLineageSettings, TracesSettings
from headrace.lakes.lake_settings import LakeSettings

LAYOUT_LIMIT = 10_000_000
"""Rows of a stream table or its sources from which on a new stored layout is loaded beside, if nothing is said."""


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """A database source as `headrace.toml` declares it.

    Args:
        url: Connection string without a password, or `env:NAME` for one in an environment variable.
        tables: The tables, as `CREATE SOURCE` has them.
        text_columns: Columns to keep as text.
        capture: How it is captured: one of `CAPTURES`; None for what is meant when nothing is said.
        failover: Replicas keep its slot in step.
        kind: What kind of database; None for the one that is meant when nothing is said, whose settings these are.
        options: Further settings, which the kind reads.
    """

    url: str
    tables: tuple[str, ...]
    text_columns: tuple[str, ...] = ()
    capture: str | None = None
    failover: bool = False
    kind: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredSink:
    """A sink as `headrace.toml` declares it.

    Args:
        stream: The stream table.
        url: Connection string without a password, or `env:NAME` for one in an environment variable.
        table: The table there.
        key: Columns that identify a row; none for a bag.
        schedule: When it is written; None: as soon as something is published.
        kind: What kind of database; None for the one that is meant when nothing is said.
        options: Further settings, which the kind reads.
    """

    stream: str
    url: str
    table: str
    key: tuple[str, ...] = ()
    schedule: str | None = None
    kind: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a project.

    Args:
        root: The project folder.
        catalog_url: SQLAlchemy URL of the catalog database (`sqlite:///…` or `postgresql://…`).
        warehouse: Where Iceberg tables are written: a folder or an object-store URL.
        spark_master: Spark master, such as `local[*]` or `spark://host:7077`.
        spark_remote: Spark Connect address (`sc://host:15002`); replaces the master when set.
        spark_options: Further Spark options, by their full names.
        ivy_settings: An ivysettings.xml for fetching jars from a mirror; Maven Central when None.
        jars_dir: Folder of the jars; one shared folder in the user's cache when None.
        format_version: Iceberg format of the tables Headrace creates, 3 or 2.
        max_concurrent_refreshes: How many refreshes a scheduler, or a call by hand, runs at once, 1 to 32.
        default_schedule: Schedule of a stream table that has none of its own and that nothing scheduled reads.
        diamond_consistency: `atomic`, `aligned` or `none`, where a stream table says nothing.
        diamond_schedule_policy: `fastest` or `slowest`, where a stream table says nothing.
        allow_cycles: Whether stream tables may read each other in a circle.
        max_cycle_rounds: In how many rounds the members of such a cycle may gain rows; one more is an error.
        fuse_ceiling: Changed rows above which a stream table's fuse blows, where it says nothing; `none` for no limit.
        fuse_factor: The same as a multiple of the largest of its recent changes.
        suspend_after: After so many failures in a row a scheduler suspends a stream table.
        maintenance_every: How often a scheduler maintains stored tables while it is idle, and after twice that
            time in any case; `never` for not at all.
        keep_history: For how long refreshes stay in the history, but for the newest of each stream table; `forever`
            for all.
        webhook: A URL to which a scheduler posts what happens; None for none.
        on_event: A function (`module:function`) that a scheduler calls with what happens; None for none.
        pools: How many refreshes of each pool run at once.
        deploy_slots: How many refreshes of stream tables in deployments run at once.
        layout_limit: Stream tables of more rows, or that read sources of more, get a new stored layout by a deployment;
            None where all are loaded in place.
        sources: Database sources that are declared, by name.
        sinks: Sinks that are declared, by name.
        serve_auto: Whether the first command that needs Spark starts a server in the background.
        serve_idle_minutes: After so many minutes without work such a server ends.
        serve_metrics: Where `headrace run` answers Prometheus; None for nowhere.
        disabled_passes: Passes of the optimiser that are switched off, for tests and support.
        openlineage: Where OpenLineage's run events go; None for nowhere.
        traces: Where OpenTelemetry's spans go.
        lake: The REST catalog that keeps the lake; None where it is in the catalog's own database.
        storage: Properties with which Iceberg reaches an object store, secrets included.
    """

    root: Path
    catalog_url: str
    warehouse: str
    spark_master: str = "local[*]"
    spark_remote: str | None = None
    spark_options: Mapping[str, str] = field(default_factory=dict)
    ivy_settings: str | None = None
    jars_dir: str | None = None
    format_version: int = 3
    max_concurrent_refreshes: int = 4
    default_schedule: str = "1 minute"
    diamond_consistency: str = "atomic"
    diamond_schedule_policy: str = "fastest"
    allow_cycles: bool = False
    max_cycle_rounds: int = 100
    fuse_ceiling: str = "none"
    fuse_factor: str = "none"
    suspend_after: int = 5
    maintenance_every: str = "1 day"
    keep_history: str = "90 days"
    webhook: str | None = None
    on_event: str | None = None
    pools: Mapping[str, int] = field(default_factory=dict)
    deploy_slots: int = 1
    layout_limit: int | None = LAYOUT_LIMIT
    sources: Mapping[str, DeclaredSource] = field(default_factory=dict)
    sinks: Mapping[str, DeclaredSink] = field(default_factory=dict)
    serve_auto: bool = True
    serve_idle_minutes: float = 15.0
    serve_metrics: Address | None = None
    disabled_passes: tuple[str, ...] = ()
    openlineage: OpenLineageSettings | None = None
    traces: TracesSettings = field(default_factory=TracesSettings)
    lake: LakeSettings | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def jars(self) -> Path:
        """Return folder that holds (or will hold) the jars."""
        if self.jars_dir:
            return Path(self.jars_dir).expanduser()
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(cache).expanduser() / "headrace" / "jars"


def default_settings(root: Path) -> Settings:
    """Return settings of a folder without a file.

    SQLite catalog and a warehouse folder inside it.
    """
    root = root.resolve()
    return Settings(root=root, catalog_url=f"sqlite:///{root / 'headrace.db'}", warehouse=str(root / "warehouse"))
