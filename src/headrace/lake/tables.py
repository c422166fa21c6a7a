"""The tables Headrace creates: names, locations, DDL."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.algebra.schema import Column
from headrace.algebra.types import in_sql, mentions
from headrace.errors import Unsupported
from headrace.names import RESERVED_PREFIX, STAGING, SYSTEM_NAMESPACE, WEIGHT, TableName, quote

VERSION = f"{RESERVED_PREFIX}version"
"""Log column: the version of the stream table that a change belongs to."""

OPERATION = f"{RESERVED_PREFIX}op"
"""Column of the change logs of mirrors: the place of a row in the order in which its source was landed."""

COMPLETE_AFTER = "headrace-complete-after"
"""Property of a change log: it has the changes of all versions after this one. A reader that reflects an older version
cannot follow it; a log without the property, of a former release, is taken to be complete."""

_V3_ONLY = ("variant", "geometry", "geography", "void")


@dataclass(frozen=True, slots=True)
class Stored:
    """The names of a stream table's stored parts, all in `staging`.

    Args:
        state: The table itself.
        companion: Accumulators, should it need any.
        log: Its change log, should it have consumers.
    """

    state: TableName
    companion: TableName
    log: TableName


def new_suffix() -> str:
    """Return a fresh suffix, unique enough for locations that are never reused."""
    return uuid.uuid4().hex[:10]


def stored_names(name: TableName, suffix: str) -> Stored:
    """Return where the parts of stream table `name` are stored."""
    stem = "_".join((*name.namespace, name.table, suffix))
    system = (SYSTEM_NAMESPACE,)
    return Stored(
        state=name.within(STAGING),
        companion=TableName(STAGING, system, f"{stem}_companion"),
        log=TableName(STAGING, system, f"{stem}_log"),
    )


def table_location(warehouse: str, table: TableName, suffix: str) -> str:
    """Return a new table folder: readable, never reused, as renames move no data."""
    stem = table.table if suffix in table.table else f"{table.table}-{suffix}"
    parts = (re.sub(r"[^\w.-]", "_", part) for part in (*table.namespace, stem))
    return "/".join((warehouse.rstrip("/"), *parts))


MERGE_MANIFESTS = "commit.manifest.min-count-to-merge"
MANIFESTS = "8"
"""Small commits leave a manifest each, and planning a scan reads all of them, 3 ms apiece: a delta over ten scans of
tables with 45 manifests (Iceberg merges 100) took 0.6 s to plan, with a few 0.2 s."""


def table_properties(format_version: int, *, append_only: bool = False) -> dict[str, str]:
    """Return properties of a table that Headrace writes.

    Published pointers may refer to any older metadata file, so commits must not delete those; maintenance does. A
    change is small and comes from few tasks: a shuffle by partition before each write would only cost a job.
    """
    properties = {
        "format-version": str(format_version),
        "write.metadata.delete-after-commit.enabled": "false",
        "write.metadata.previous-versions-max": "100",
        "write.distribution-mode": "none",
        "write.parquet.compression-codec": "zstd",
        "write.parquet.compression-level": "1",
        "commit.retry.num-retries": "0",
        MERGE_MANIFESTS: MANIFESTS,
        "write.spark.fanout.enabled": "true",
    }
    if not append_only:
        modes = ("delete", "update", "merge")
        properties |= {f"write.{m}.mode": "merge-on-read" for m in modes}
        properties |= {f"write.{m}.distribution-mode": "none" for m in modes}
    return properties


def log_columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of a change log over a table of `columns`."""
    return (*columns, Column(WEIGHT, "bigint", False), Column(VERSION, "bigint", False))


def create_namespace(catalog: str, namespace: tuple[str, ...]) -> str:
    """Return the statement that makes a namespace if it is missing."""
    return f"CREATE NAMESPACE IF NOT EXISTS {'.'.join(map(quote, (catalog, *namespace)))}"


def create_table(
    table: TableName,
    columns: tuple[Column, ...],
    *,
    location: str,
    format_version: int,
    append_only: bool = False,
    further: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the statement that creates a table, empty.

    Args:
        table: Its full name.
        columns: Its columns; nullable ones stay so, others too, since a delta may pass through NULL.
        location: Its folder.
        format_version: 2 or 3.
        append_only: A change log: rows are only added, or deleted by whole versions.
        further: Properties besides those of all tables.

    Raises:
        Unsupported: `TYPE_NOT_STORABLE` when this format cannot hold a column's type.
    """
    _check_types(columns, format_version)
    body = ", ".join(f"{quote(c.name)} {in_sql(c.type)}" for c in columns)
    properties = {**table_properties(format_version, append_only=append_only), **further}
    options = ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())
    return (
        f"CREATE TABLE {table.sql} ({body}) USING iceberg LOCATION {string_literal(location)} TBLPROPERTIES ({options})"
    )


def create_log(
    log: TableName,
    columns: tuple[Column, ...],
    *,
    location: str,
    format_version: int,
    after: int = 0,
    numbered: bool = False,
) -> str:
    """Return the statement that creates a change log.

    It needs no partitions: every refresh appends files of one version, and their bounds prune reads and let trimming
    drop whole files.

    Args:
        log: Its full name.
        columns: The columns of the table whose changes it has.
        location: Its folder.
        format_version: 2 or 3.
        after: The version that the table has; the changes from there on are going to be in the log.
        numbered: Its rows have operation ids, as those of mirrors do.
    """
    return create_table(
        log,
        (*log_columns(columns), *((Column(OPERATION, "bigint"),) if numbered else ())),
        location=location,
        format_version=format_version,
        append_only=True,
        further={COMPLETE_AFTER: str(after)},
    )


def set_complete_after(log: TableName, version: int) -> str:
    """Return the statement that notes after which version a change log is complete."""
    return f"ALTER TABLE {log.sql} SET TBLPROPERTIES ('{COMPLETE_AFTER}' = '{version}')"


def _check_types(columns: tuple[Column, ...], format_version: int) -> None:
    for column in columns:
        newer = format_version < 3 and mentions(column.type, *_V3_ONLY)
        if newer or mentions(column.type, "interval", "void"):
            raise Unsupported(
                "TYPE_NOT_STORABLE",
                f"Column {column.name} has type {column.type}, which an Iceberg v{format_version} table cannot hold.",
                hint=f"Cast it in the query, for example CAST({column.name} AS STRING).",
            )


def string_literal(value: str) -> str:
    """Return a text as Spark SQL writes it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
