"""Watermarks: up to which moment sources are complete, and which tables wait for others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.api.safeguards.missing_tables import missing_table
from headrace.catalog import Catalog, WatermarkGroup
from headrace.errors import EnvironmentFault, UserError
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.watermark_alignment import agrees, below, distance, waiting
from headrace.refresh.groups.grouping import Grouping
from headrace.results.refresh_results import Record
from headrace.schedule.durations import parse_duration, show_duration


@dataclass(frozen=True, slots=True)
class WatermarkInfo(Record):
    """A group of sources that must agree.

    Args:
        name: The group.
        tolerance: By how many seconds the watermarks may be apart.
        marks: The watermark of each source; None before it was ever advanced.
        apart: By how many seconds they are apart; None while some source has none.
        agrees: Whether they agree.
        dependants: The stream tables that are refreshed only while they do.
    """

    name: str
    tolerance: float
    marks: Mapping[str, dt.datetime | None]
    apart: float | None
    agrees: bool
    dependants: tuple[str, ...]


def watermark_infos(catalog: Catalog) -> tuple[WatermarkInfo, ...]:
    """Return the groups; see `Headrace.watermarks`."""
    dag = Dag(catalog.dependencies())
    return tuple(_info(group, dag) for group in catalog.watermark_groups())


def _info(group: WatermarkGroup, dag: Dag[TableName]) -> WatermarkInfo:
    apart = distance(group)
    return WatermarkInfo(
        name=group.name,
        tolerance=group.tolerance.total_seconds(),
        marks={str(source): mark for source, mark in group.marks.items()},
        apart=None if apart is None else apart.total_seconds(),
        agrees=agrees(group),
        dependants=tuple(str(n) for n in below(group, dag)),
    )


def create_group(
    catalog: Catalog, name: str, sources: Sequence[TableName], tolerance: dt.timedelta | str, heads: Cut
) -> None:
    """Make a group; see `Headrace.create_watermark_group`."""
    if not name.strip() or len(sources) < 2:
        raise UserError("INVALID_OPTION", "A watermark group has a name and two or more sources.")
    allowed = parse_tolerance(tolerance)
    streams = {t.name for t in catalog.stream_tables()}
    if wrong := next((s for s in sources if s in streams), None):
        raise UserError(
            "INVALID_OPTION",
            f"{wrong} is a stream table; watermarks are of sources.",
            hint="Name the sources that it reads.",
        )
    there = heads.versions(sources)
    if missing := [s for s in sources if s not in there]:
        raise missing_table(catalog, missing[0], "could have a watermark")
    catalog.create_watermark_group(name.strip(), sources, allowed)


def drop_group(catalog: Catalog, name: str, *, if_exists: bool) -> None:
    """Drop a group; see `Headrace.drop_watermark_group`."""
    if not catalog.drop_watermark_group(name.strip()) and not if_exists:
        raise UserError(
            "WATERMARK_GROUP_NOT_FOUND",
            f"There is no watermark group {name}.",
            hint="`headrace watermark list` shows groups.",
        )


def parse_tolerance(tolerance: dt.timedelta | str) -> dt.timedelta:
    """Return a tolerance, zero or more.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    if isinstance(tolerance, str):
        seconds = parse_duration(tolerance)
        tolerance = dt.timedelta(days=-1) if seconds is None else dt.timedelta(seconds=seconds)
    if tolerance < dt.timedelta(0):
        raise UserError(
            "INVALID_OPTION",
            "A tolerance is a duration of zero or more.",
            hint="Write such as '5 minutes', or '0 seconds' where watermarks must be equal.",
        )
    return tolerance


def parse_moment(moment: dt.datetime | str) -> dt.datetime:
    """Return a moment, in UTC.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    try:
        found = dt.datetime.fromisoformat(moment.strip()) if isinstance(moment, str) else moment
        utc = None if found.tzinfo is None else found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise UserError(
            "INVALID_OPTION", f"'{moment}' is no moment.", hint="Write such as '2026-03-01T06:00:00Z'."
        ) from None
    if utc is None:
        raise UserError(
            "INVALID_OPTION", f"{moment} has no time zone.", hint="Write such as '2026-03-01T06:00:00+01:00', or Z."
        )
    return utc


def apart_units(catalog: Catalog, grouping: Grouping) -> dict[TableName, EnvironmentFault]:
    """Return the units that are not to be refreshed, each with the error that says why."""
    groups = catalog.watermark_groups()
    if not groups:
        return {}
    waits = waiting(groups, grouping.graph, grouping.options)
    return {grouping.units.unit_of[name]: _apart(name, group) for name, group in waits.items()}


def refuse_apart(catalog: Catalog, grouping: Grouping, names: Iterable[TableName]) -> None:
    """Refuse stream tables that wait for watermarks.

    Raises:
        EnvironmentFault: `WATERMARKS_APART`.
    """
    units = apart_units(catalog, grouping)
    for name in names:
        if (error := units.get(grouping.units.unit_of[name])) is not None:
            raise error


def _apart(name: TableName, group: WatermarkGroup) -> EnvironmentFault:
    marks = (f"{s} {'has none' if m is None else f'is at {m.isoformat()}'}" for s, m in group.marks.items())
    return EnvironmentFault(
        "WATERMARKS_APART",
        f"{name} waits for watermark group {group.name}, whose sources do not agree; nothing was refreshed.",
        detail=f"{', '.join(marks)}; tolerance {show_duration(group.tolerance.total_seconds())}.",
        hint="Advance the one that is behind: `headrace watermark advance` with a source and a moment.",
        retryable=True,
    )
