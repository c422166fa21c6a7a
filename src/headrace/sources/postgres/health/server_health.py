"""Looking at a server without changing anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.sources.postgres.citus.citus_capture import by_cuts, on_all_nodes
from headrace.sources.postgres.citus.cluster import cluster
from headrace.sources.postgres.citus.cluster_health import cluster_health, cluster_look
from headrace.sources.postgres.citus.cluster_requirements import check_cluster
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.health import backlog
from headrace.sources.postgres.health.node_health import Health, by_node, look_at
from headrace.sources.postgres.health.slot_outlook import as_row
from headrace.sources.postgres.server import server, tables
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.triggers.trigger_capture import by_triggers
from headrace.sources.postgres.triggers.trigger_requirements import change_tables
from headrace.sources.postgres.wal.slots import find_slot, slot_use, touch
from headrace.sources.source_kind import Check, Json


def health(options: Mapping[str, Any], position: Mapping[str, Any] | None) -> Health:
    """Read the health of a source at its server.

    Args:
        options: The source's options.
        position: Up to where it is landed; None before the first landing.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
    """
    if by_cuts(position) and position is not None:
        return cluster_health(options, position)
    with connected(options["url"]) as connection:
        way = options.get("capture", "wal")
        if by_triggers(position) if position else way != "wal":
            return _of_triggers(connection, options["slot"], position)
        now = server(connection)
        slot = find_slot(connection, options["slot"])
        use = slot_use(connection, options["slot"]) if slot is not None else None
        if position is None or slot is None or slot.lost:
            lag = None if position is None else max(0, now.position - position["lsn"])
            return Health(lag, slot, use=use, look=look_at(now, slot, use))
        waits = backlog.in_log(connection, options["slot"], options["slot"], position["lsn"])
    return Health(max(0, now.position - position["lsn"]), slot, backlog=waits, use=use, look=look_at(now, slot, use))


IDLE_SHARE = 4
"""After this part of its patience a slot is touched that is landed and has nothing to give."""


def look(
    options: Mapping[str, Any], position: Mapping[str, Any] | None = None, *, keep_from_idling: bool
) -> Json | None:
    """Look at the slot of a source, as is remembered; None when there is none to lose.

    Args:
        options: The source's options.
        position: What is landed; a cut of a cluster has all of its nodes looked at.
        keep_from_idling: It is landed; have the server count that as reading it.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
    """
    if by_cuts(position):
        return by_node(cluster_look(options, 1 / IDLE_SHARE if keep_from_idling else 0))
    with connected(options["url"]) as connection:
        if position is None and on_all_nodes(connection, options["slot"]):  # the first snapshot was cut off
            return by_node(cluster_look(options, 0))
        now, slot = server(connection), find_slot(connection, options["slot"])
        use = slot_use(connection, options["slot"])
        if keep_from_idling and use and use.patience and use.idle and use.idle > use.patience / IDLE_SHARE:
            touch(connection, options["slot"])
            use = slot_use(connection, options["slot"])
    found = look_at(now, slot, use)
    return None if found is None else as_row(found)


def _of_triggers(connection: Connection, schema: str, position: Mapping[str, Any] | None) -> Health:
    found = change_tables(connection, schema)
    of = position or {"snapshot": "1:1:"}
    waiting, waits = backlog.in_change_tables(
        connection, schema, [t.name for t in found], of["snapshot"], of.get("clock")
    )
    return Health(None, None, waiting, sum(t.size for t in found) if found else None, waits)


def check(
    url: str,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str] = (),
    parts: Mapping[tuple[str, str], Part] | None = None,
    capture: str = "wal",
) -> tuple[Check, ...]:
    """Check the requirements for capturing tables.

    Args:
        url: The database.
        names: Schema and name of each table.
        as_text: Columns to be kept as text, as `schema.table.column`.
        parts: Columns and condition of tables that are not captured whole.
        capture: `wal`, `trigger` or `auto`.

    Returns:
        What was checked, each with the SQL that repairs it. With `auto`, what triggers need, and then what the log
        needs, which does not keep a source from being created.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
    """
    with connected(url) as connection:
        found: list[Check] = []
        if capture != "wal":
            found += preflight.check_for_triggers(connection, names, as_text, parts=parts)[0]
        if capture != "trigger":
            of_log = _of_log(connection, url, names, as_text, parts, capture)
            found += map(_later, of_log) if capture == "auto" else of_log
        return tuple(found)


def _of_log(
    connection: Connection,
    url: str,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str],
    parts: Mapping[tuple[str, str], Part] | None,
    capture: str,
) -> tuple[Check, ...]:
    """Check what the log needs: of one server, or of all nodes where a table is one of Citus'."""
    if capture == "wal" and any(f.sharded for f in tables(connection, server(connection).version, names=names)):
        with cluster(url) as of:
            return check_cluster(of, names, as_text, parts=parts)[0]
    return preflight.check(connection, names, as_text, parts=parts)[0]


def _later(check: Check) -> Check:
    """Return a check of what the log needs as `auto` counts it: a source begins without."""
    if check.ok:
        return replace(check, finding=f"the log: {check.finding}")
    remedy = f". Run there: {check.remedy}" if check.remedy else ""
    return replace(check, ok=True, finding=f"the log, not yet: {check.finding}{remedy}", remedy=None)
