"""Settings from environment variables, headrace.toml and defaults, in this order."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.addresses import Address, parse_address
from headrace.errors import UserError
from headrace.exporter_settings import (
    OPENLINEAGE_KEYS,
    TRACES_KEYS,
    OpenLineageSettings,
    TracesSettings,
    read_openlineage,
    read_traces,
)
from headrace.lakes.lake_settings import LAKE_KEYS, LakeSettings, read_lake
from headrace.lakes.storage_settings import read_storage
from headrace.schedule import parse_schedule
from headrace.schedule.durations import parse_duration
from headrace.schedule.options import parse_ceiling, parse_consistency, parse_factor, parse_policy
from headrace.suggestions import did_you_mean

FILE_NAME = "headrace.toml"

SPARK_OPTIONS = "HEADRACE_SPARK_OPTIONS"
"""Environment variable with Spark options, `name=value` separated by spaces, quoted as in a shell; each one wins over
the file's."""

KNOWN = (
    "catalog_url",
    "warehouse",
    "spark_master",
    "spark_remote",
    "ivy_settings",
    "jars_dir",
    "format_version",
    "max_concurrent_refreshes",
    "default_schedule",
    "diamond_consistency",
    "diamond_schedule_policy",
    "allow_cycles",
    "max_cycle_rounds",
    "fuse_ceiling",
    "fuse_factor",
    "suspend_after",
    "maintenance_every",
    "webhook",
    "on_event",
)

LAYOUT_LIMIT = 10_000_000
"""Rows of a stream table or its sources from which on a new stored layout is loaded beside, if nothing is said."""

MOST_IDLE_MINUTES = 10_080
"""A week."""

MOST_CONCURRENT = 32
"""More refreshes at once only wait for each other in one Spark session."""


CAPTURES = ("wal", "trigger", "auto")
"""How a declared source can be captured."""

SOURCE_KEYS = ("url", "url_env", "tables", "text_columns", "capture", "failover", "kind")
SINK_KEYS = (
    *("from", "url", "url_env", "table", "key", "schedule", "kind"),
    *("on_conflict", "placement", "distributed_by", "colocated_with"),
)
"""What a declared source or sink of PostgreSQL may have, besides shards."""

SHARD_KEYS = ("shards", "shard_column", "availability", "same_key")
"""What can be declared of a source with shards, in place of its URL."""


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
        maintenance_every: How often a scheduler maintains stored tables while it is idle; `never` for not at all.
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


def load(root: Path | str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of a project folder.

    Relative SQLite paths and warehouse folders are taken relative to the project folder.

    Args:
        root: The project folder, or its headrace.toml.
        environ: Environment to read `HEADRACE_<KEY>` variables from; the process's own when None.

    Raises:
        UserError: `PROJECT_NOT_FOUND`, `CONFIG_INVALID`.
    """
    path = Path(root).expanduser()
    file = path if path.name == FILE_NAME else path / FILE_NAME
    if not file.is_file():
        raise UserError(
            "PROJECT_NOT_FOUND",
            f"{file.parent} is no Headrace project: it has no {FILE_NAME}.",
            hint="Run `headrace init <folder>` to make one, or pass --project.",
        )
    sections = _read(file)
    options = _flatten(sections.get("spark", {}))
    _check_spark_options(file, options)
    values = dict(sections.get("headrace", {}))
    environ = os.environ if environ is None else environ
    for key in KNOWN:
        if (given := environ.get(f"HEADRACE_{key.upper()}")) is not None:
            values[key] = given
    settings = _build(file, values, options | _from_text(environ.get(SPARK_OPTIONS, "")))
    settings = replace(
        settings, sources={name: _declared(file, name, of) for name, of in sections.get("sources", {}).items()}
    )
    settings = replace(
        settings, sinks={name: _declared_sink(file, name, of) for name, of in sections.get("sinks", {}).items()}
    )
    slots, limit = _deploy(file, sections.get("deploy", {}))
    auto, idle, metrics = _serve(file, sections.get("serve", {}))
    settings = replace(settings, serve_auto=auto, serve_idle_minutes=idle, serve_metrics=metrics)
    disabled = _disabled(file, sections.get("optimizer", {}))
    settings = replace(settings, disabled_passes=disabled, deploy_slots=slots, layout_limit=limit)
    exporters = _exporters(file, sections.get("openlineage"), sections.get("traces", {}))
    settings = replace(settings, **exporters, lake=_lake(file, sections.get("lake")))
    settings = replace(settings, storage=read_storage(file, sections.get("storage", {}), environ))
    return _with_scheduling(file, settings, values, sections.get("pools", {}))


def _exporters(file: Path, openlineage: Section | None, traces: Section) -> dict[str, Any]:
    """Return what the sections `[openlineage]` and `[traces]` say."""
    _only(file, "openlineage", openlineage or {}, OPENLINEAGE_KEYS)
    _only(file, "traces", traces, TRACES_KEYS)
    return {"openlineage": read_openlineage(file, openlineage), "traces": read_traces(file, traces)}


def _lake(file: Path, section: Section | None) -> LakeSettings | None:
    """Return what the section `[lake]` says."""
    _only(file, "lake", section or {}, LAKE_KEYS)
    return read_lake(file, section)


def _serve(file: Path, section: Mapping[str, object]) -> tuple[bool, float, Address | None]:
    """Return what the section `[serve]` says: `auto`, `idle_minutes` and `metrics`."""
    _only(file, "serve", section, ("auto", "idle_minutes", "metrics"))
    auto, idle, metrics = section.get("auto", True), section.get("idle_minutes", 15.0), section.get("metrics", "")
    right = isinstance(idle, (int, float)) and not isinstance(idle, bool) and 0 < idle <= MOST_IDLE_MINUTES
    known = isinstance(auto, bool) and isinstance(metrics, str)
    if not known or not right:
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has something in [serve] that is not understood.",
            hint="It may have auto: whether the first command that needs Spark starts a server, true or false; "
            f"idle_minutes: after how many minutes without work it ends, up to {MOST_IDLE_MINUTES}; and metrics: where "
            'headrace run answers Prometheus, such as "127.0.0.1:9464".',
        )
    return (
        auto is True,
        float(str(idle)),
        parse_address(str(metrics), f"metrics of [serve] in {file}") if metrics else None,
    )


def _deploy(file: Path, section: Mapping[str, object]) -> tuple[int, int | None]:
    """Return what the section `[deploy]` says: slots, and the limit for layouts."""
    _only(file, "deploy", section, ("slots", "layout_limit"))
    slots, limit = section.get("slots", 1), section.get("layout_limit", LAYOUT_LIMIT)
    limit = None if limit == "none" else limit
    numbers = [number for number in (slots, limit) if number is not None]
    if (
        not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        or not (isinstance(slots, int) and slots >= 1)
        or not (limit is None or (isinstance(limit, int) and limit >= 0))
    ):
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has something in [deploy] that is not understood.",
            hint="It may have slots: how many refreshes of deployments may run at once, 1 or more; and layout_limit: "
            'from how many rows on an upgrade loads a stream table beside the running one, or "none".',
        )
    return slots, limit


def _only(file: Path, name: str, section: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuse keys of a section that nothing is known of."""
    if unknown := next((key for key in section if key not in known), None):
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has {unknown} in [{name}], which nothing is known of.",
            hint=f"{did_you_mean(unknown, known)}[{name}] may have {', '.join(known)}."
            + (" Move the line below [headrace]." if unknown in KNOWN else ""),
        )


def _disabled(file: Path, section: Mapping[str, object]) -> tuple[str, ...]:
    """Return the section `[optimizer]`.

    Which names there are is known to the optimiser, which is not loaded for this.
    """
    _only(file, "optimizer", section, ("disable",))
    names = _texts(section.get("disable", []))
    if names is None:
        raise UserError(
            "CONFIG_INVALID",
            f"[optimizer] in {file} cannot be read.",
            hint='Write disable = ["name", …] with names of passes; `headrace explain --passes` lists them.',
        )
    return tuple(dict.fromkeys(names))


def _declared(file: Path, name: str, of: object) -> DeclaredSource:
    """Read a section `[sources.NAME]`; its kind decides which keys it may hold."""
    given = dict(of) if isinstance(of, dict) else {"": of}
    url = [f"{prefix}{given.pop(key)}" for key, prefix in (("url", ""), ("url_env", "env:")) if key in given]
    tables, text_columns = (_texts(given.pop(key, [])) for key in ("tables", "text_columns"))
    shards = {key: given.pop(key) for key in SHARD_KEYS if key in given} if "shards" in given else {}
    url = [*url, ""] if shards else url
    capture, failover = given.pop("capture", None), given.pop("failover", False)
    kind = given.pop("kind", None)
    odd = failover not in (True, False) or (kind is None and bool(given))
    odd = odd or (kind in (None, "postgres") and capture not in (None, *CAPTURES))
    named = isinstance(kind, str | None) and isinstance(capture, str | None)
    if odd or not named or len(url) != 1 or not tables or text_columns is None:
        raise UserError(
            "CONFIG_INVALID",
            f"[sources.{name}] in {file} cannot be read.",
            detail=_unknown(given, SOURCE_KEYS) if given and kind is None else None,
            hint='Write url = "postgresql://…", url_env = "NAME" or shards = ["postgresql://…", …], '
            'tables = ["schema.table", …], and where needed '
            'text_columns = ["schema.table.column", …], failover = true, '
            f'capture = "…", one of {", ".join(CAPTURES)}, and kind = "…" for another kind of database.',
        )
    return DeclaredSource(
        url[0],
        tables,
        text_columns,
        None if capture is None else str(capture),
        bool(failover),
        None if kind is None else str(kind),
        given | shards,
    )


def _declared_sink(file: Path, name: str, of: object) -> DeclaredSink:
    """Read a section `[sinks.NAME]`; its kind decides which further keys it may hold."""
    given = dict(of) if isinstance(of, dict) else {"": of}
    url = [f"{prefix}{given.pop(key)}" for key, prefix in (("url", ""), ("url_env", "env:")) if key in given]
    stream, table = given.pop("from", None), given.pop("table", None)
    key, schedule, kind = _texts(given.pop("key", [])), given.pop("schedule", None), given.pop("kind", None)
    texts = isinstance(stream, str) and isinstance(table, str)
    odd = kind is None and bool(given.keys() - SINK_KEYS)
    if odd or len(url) != 1 or not texts or key is None or not isinstance(schedule, str | None) or "" in given:
        raise UserError(
            "CONFIG_INVALID",
            f"[sinks.{name}] in {file} cannot be read.",
            detail=_unknown(given, SINK_KEYS) if given.keys() - SINK_KEYS and kind is None else None,
            hint='Write from = "shop.revenue", url = "postgresql://…" or url_env = "NAME", table = "schema.table", and '
            'where needed key = ["column", …], schedule = "…", on_conflict = "refuse" or "overwrite", placement = "…", '
            'distributed_by = "column", colocated_with = "schema.table".',
        )
    return DeclaredSink(str(stream), url[0], str(table), key, schedule, None if kind is None else str(kind), given)


def _unknown(given: Mapping[str, object], known: Iterable[str]) -> str:
    odd = [key for key in given if key not in known]
    return f"It has {', '.join(map(repr, odd or given))}, which nothing is known of. " + (
        did_you_mean(odd[0], known) if odd else ""
    )


def _texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts; None for what is none."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return None
    return tuple(value)


def _from_text(text: str) -> dict[str, str]:
    try:
        pairs = [part.partition("=") for part in shlex.split(text)]
    except ValueError as error:
        raise UserError("CONFIG_INVALID", f"{SPARK_OPTIONS} has an unclosed quote.", detail=text) from error
    for name, sign, _ in pairs:
        if not sign or not name.startswith("spark."):
            raise UserError(
                "CONFIG_INVALID",
                f"{SPARK_OPTIONS} has {name!r}, which is no Spark option.",
                hint="Write full names: spark.driver.memory=4g spark.ui.enabled=true (separated by spaces).",
            )
    return {name: value for name, _, value in pairs}


SECTIONS = (
    "headrace",
    "spark",
    "pools",
    "sources",
    "sinks",
    "optimizer",
    "deploy",
    "serve",
    "lake",
    "openlineage",
    "traces",
    "storage",
)
"""What the file may hold; `[sources.NAME]` and `[sinks.NAME]` by name."""

Section = dict[str, object]


def _read(file: Path) -> dict[str, Section]:
    """Return the sections that the file has, by name."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("CONFIG_INVALID", f"{file} is not valid TOML.", detail=str(error)) from error
    for name in (*(name for name in data if name not in SECTIONS), *(name for name in SECTIONS if name in data)):
        _check_section(file, name, data[name])
    if unknown := sorted(set(data.get("headrace", {})) - set(KNOWN)):
        moved = " They are Spark's, and go into [spark]." if all(key.startswith("spark") for key in unknown) else ""
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has an unknown setting: {', '.join(unknown)}.{moved}",
            hint=f"{did_you_mean(unknown[0], KNOWN)}Settings are {', '.join(KNOWN)}; Spark options go into [spark].",
        )
    return data


def _check_section(file: Path, name: str, section: object) -> None:
    """Refuse sections that nothing is known of, and keys that stand outside of sections."""
    shown = ", ".join(f"[{each}.NAME]" if each in ("sources", "sinks") else f"[{each}]" for each in SECTIONS)
    if name in SECTIONS and isinstance(section, dict):
        return
    if isinstance(section, dict):
        meant = did_you_mean(name, SECTIONS)
        raise UserError(
            "CONFIG_INVALID", f"{file} has an unknown section: [{name}].", hint=f"{meant}It may hold {shown}."
        )
    if name in KNOWN:
        raise UserError(
            "CONFIG_INVALID", f"{file} has {name} outside of a section.", hint="Move it below the line [headrace]."
        )
    raise UserError(
        "CONFIG_INVALID",
        f"{file} has {name} outside of a section, and nothing is known of it.",
        hint=f"{did_you_mean(name, KNOWN)}It may hold {shown}.",
    )


def _check_spark_options(file: Path, options: Mapping[str, str]) -> None:
    """Refuse what is no Spark option: Spark would take it, and nobody would ever read it."""
    odd = next((name for name in options if not name.startswith("spark.")), None)
    if odd is None:
        return
    if odd in KNOWN:
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has {odd} in [spark], where nobody reads it.",
            hint="A key belongs to the section above it: move the line below [headrace], before the line [spark].",
        )
    raise UserError(
        "CONFIG_INVALID",
        f"{file} has {odd} in [spark], which is no Spark option.",
        hint=f'{did_you_mean(odd, KNOWN)}Write full names in quotes, such as "spark.driver.memory" = "4g".',
    )


def _flatten(options: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in options.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}.")
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _build(file: Path, values: Mapping[str, object], options: Mapping[str, str]) -> Settings:
    defaults = default_settings(file.parent)
    text = {k: str(v) for k, v in values.items()}
    version = text.get("format_version", str(defaults.format_version))
    if version not in ("2", "3"):
        message = f"format_version is {version!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint="Use 3, or 2 for older readers.")
    return Settings(
        root=defaults.root,
        catalog_url=_absolute_url(text.get("catalog_url", defaults.catalog_url), defaults.root),
        warehouse=_absolute_path(text.get("warehouse", defaults.warehouse), defaults.root),
        spark_master=text.get("spark_master", defaults.spark_master),
        spark_remote=text.get("spark_remote") or None,
        spark_options=dict(options),
        ivy_settings=_absolute_path(given, defaults.root) if (given := text.get("ivy_settings")) else None,
        jars_dir=_absolute_path(given, defaults.root) if (given := text.get("jars_dir")) else None,
        format_version=int(version),
    )


def _with_scheduling(
    file: Path, settings: Settings, values: Mapping[str, object], pools: Mapping[str, object]
) -> Settings:
    for pool, quota in pools.items():
        if not isinstance(quota, int) or isinstance(quota, bool) or quota < 1:
            message = f"Pool {pool} has the quota {quota!r} in {file}."
            raise UserError("CONFIG_INVALID", message, hint="Write how many refreshes may run at once, 1 or more.")
    most = str(values.get("max_concurrent_refreshes", settings.max_concurrent_refreshes))
    if not most.isdigit() or not 1 <= int(most) <= MOST_CONCURRENT:
        message = f"max_concurrent_refreshes is {most!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint=f"Use a number from 1 to {MOST_CONCURRENT}.")
    return replace(
        settings,
        max_concurrent_refreshes=int(most),
        default_schedule=_schedule(file, str(values.get("default_schedule", settings.default_schedule))),
        diamond_consistency=parse_consistency(str(values.get("diamond_consistency", settings.diamond_consistency))),
        diamond_schedule_policy=parse_policy(
            str(values.get("diamond_schedule_policy", settings.diamond_schedule_policy))
        ),
        allow_cycles=_flag(file, str(values.get("allow_cycles", settings.allow_cycles))),
        max_cycle_rounds=_count(file, "max_cycle_rounds", values.get("max_cycle_rounds", settings.max_cycle_rounds)),
        fuse_ceiling=_checked(parse_ceiling, str(values.get("fuse_ceiling", settings.fuse_ceiling))),
        fuse_factor=_checked(parse_factor, str(values.get("fuse_factor", settings.fuse_factor))),
        suspend_after=_count(file, "suspend_after", values.get("suspend_after", settings.suspend_after)),
        maintenance_every=_interval_text(str(values.get("maintenance_every", settings.maintenance_every))),
        webhook=_url(str(values.get("webhook", ""))),
        on_event=_function(str(values.get("on_event", ""))),
        pools={pool: int(str(quota)) for pool, quota in pools.items()},
    )


def _schedule(file: Path, text: str) -> str:
    try:
        return parse_schedule(text).text
    except UserError as error:
        raise UserError("INVALID_SCHEDULE", f"default_schedule in {file}: {error.message}", hint=error.hint) from error


def _checked(parse: Callable[[str], object], text: str) -> str:
    parse(text)
    return text


def _flag(file: Path, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UserError("CONFIG_INVALID", f"allow_cycles is {text!r} in {file}.", hint="Use true or false.")
    return text.lower() == "true"


def _count(file: Path, key: str, value: object) -> int:
    text = str(value)
    if not re.fullmatch(r"\d{1,9}", text) or not int(text):
        message = f"{key} is {text!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint="Use a number of at least 1.")
    return int(text)


def _url(text: str) -> str | None:
    text = text.strip()  # as a secret's file that `echo` wrote
    if text and not re.fullmatch(r"https?://[^/\s][^\s\x00-\x1f\x7f]*", text):
        raise UserError("CONFIG_INVALID", "webhook is no URL.", hint="Write one: https://host/path.")
    return text or None


def _function(text: str) -> str | None:
    if text and not re.fullmatch(r"[\w.]+:[\w.]+", text):
        raise UserError("CONFIG_INVALID", f"on_event is {text!r}.", hint="Write module:function.")
    return text or None


def parse_interval(text: str) -> int | None:
    """Return seconds of a duration; None for `never`.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    if text.strip().lower() == "never":
        return None
    seconds = parse_duration(text)
    if not seconds:
        message = f"maintenance_every is {text!r}."
        raise UserError("CONFIG_INVALID", message, hint="Write a duration, such as '1 day', or 'never'.")
    return seconds


def _interval_text(text: str) -> str:
    parse_interval(text)
    return text


def _absolute_url(url: str, root: Path) -> str:
    match = re.fullmatch(r"sqlite:///(?!/)(.+)", url)
    return f"sqlite:///{root / match[1]}" if match else url


def _absolute_path(path: str, root: Path) -> str:
    return path if "://" in path or path.startswith("file:") else str(root / Path(path).expanduser())
