"""A stream table as a user asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog import Definition, StreamTable
from headrace.definitions.details import Details, to_json
from headrace.names import TableName
from headrace.refresh.definition.define import sources_of
from headrace.results.refresh_results import RefreshMode


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A stream table as the user asked for it.

    Args:
        name: The stream table.
        query: Its query.
        schedule: When to refresh, as text; None for `DOWNSTREAM`.
        refresh_mode: AUTO, FULL or DIFFERENTIAL.
        initialize: Load it now.
        if_not_exists: Do nothing when it exists.
        or_replace: Replace it when it exists.
        options: How it is scheduled; None keeps those of the one that is replaced.
        settings_kept: Whether schedule and refresh mode are only those that the replaced one had when it was read.
    """

    name: TableName
    query: str
    schedule: str | None = None
    refresh_mode: RefreshMode = RefreshMode.AUTO
    initialize: bool = True
    if_not_exists: bool = False
    or_replace: bool = False
    options: Mapping[str, str] | None = None
    settings_kept: bool = False


def spec_of(table: StreamTable) -> TableSpec:
    """Return the specification that a stream table was made by."""
    return TableSpec(table.name, table.query, table.schedule, table.refresh_mode, or_replace=True, settings_kept=True)


def definition_of(
    spec: TableSpec, details: Details, companion: TableName | None = None, log: TableName | None = None
) -> Definition:
    """Return the definition that the catalog keeps.

    Args:
        spec: What the user asked for.
        details: What was found out about its query.
        companion: Its companion, in `lake`.
        log: Its change log, in `lake`.
    """
    return Definition(
        name=spec.name,
        query=details.query,
        sources=sources_of(details),
        refresh_mode=spec.refresh_mode,
        schedule=spec.schedule,
        details=to_json(details),
        companion=companion,
        log=log,
        options=spec.options,
        settings_kept=spec.settings_kept,
    )


def needs_companion(details: Details, mode: RefreshMode) -> bool:
    """Return whether a stream table has a companion; one always recomputed has none."""
    return details.companion is not None and mode is not RefreshMode.FULL
