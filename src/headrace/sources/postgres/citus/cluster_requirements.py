"""Checks the requirements of capturing a Citus cluster, node by node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg import sql

from headrace.sources.postgres.citus.cluster import Cluster
from headrace.sources.postgres.citus.cluster_catalog import (
    COORDINATOR,
    Placement,
    other_storage,
    placements,
    with_dropped_columns,
)
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found, server, tables
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.setup.projection import Part, narrowed, objections
from headrace.sources.source_kind import Check

OLDEST, NEWEST = 12, 14
"""Major versions of Citus that are known to do what is relied on."""

_NODE = """
SELECT current_setting('citus.enable_change_data_capture', true), (SELECT extversion FROM pg_extension
    WHERE extname = 'citus'), groupid, current_user::text,
    has_table_privilege('pg_catalog.pg_dist_transaction', 'UPDATE, DELETE, TRUNCATE'),
    (SELECT count(*) FROM pg_catalog.pg_dist_node)
FROM pg_catalog.pg_dist_local_group
"""


def check_cluster(
    cluster: Cluster,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str] = (),
    known: Mapping[int, RemoteTable] | None = None,
    parts: Mapping[tuple[str, str], Part] | None = None,
    failover: bool = False,
) -> tuple[tuple[Check, ...], tuple[Found, ...]]:
    """Check all requirements; return the checks, and the tables as the coordinator has them.

    Args:
        cluster: The cluster.
        names: Schema and name of each table.
        as_text: Columns to be kept as text.
        known: Tables that are captured already, by oid.
        parts: What is wanted of tables of which not all is.
        failover: Replicas keep the slots.
    """
    checks: list[Check] = []
    for group, connection in sorted(cluster.connections.items()):
        label = "coordinator" if group == COORDINATOR else f"worker {cluster.nodes[group]}"
        of_node = (*preflight.check_server(connection, failover), *check_node(connection, group))
        checks += (replace(c, name=f"{label}: {c.name}", remedy=_there(c.remedy, label)) for c in of_node)
        if not cluster.nodes[group].synced and group != COORDINATOR:
            finding = "does not have the cluster's metadata as it is now"
            remedy = (  # metadata that is sent anew makes tables anew, which stops other sources of the cluster
                "SELECT nodeport, metadatasynced FROM pg_dist_node; -- Citus sends it within a minute after a change of"
                " nodes; if not: SELECT start_metadata_sync_to_all_nodes(); on the coordinator"
            )
            checks.append(Check(f"{label}: metadata", False, finding, remedy))
    coordinator = cluster.coordinator
    checks += check_dropped_columns(coordinator)
    version = server(coordinator).version
    found = tables(coordinator, version, names=names, as_text=as_text, known=known)
    placed = placements(coordinator, [f.table.oid for f in found])
    by_name, fit = {(f.table.schema, f.table.name): f for f in found}, list[tuple[Found, Part]]()
    for name in names:
        if name not in by_name:
            checks.append(Check(".".join(name), False, "does not exist, or its schema cannot be seen"))
            continue
        part = (parts or {}).get(name, Part())
        by_name[name] = narrowed(by_name[name], part)
        if objected := [Check(".".join(name), False, said) for said in objections(by_name[name], part, version)]:
            checks += objected
        else:
            fit.append((by_name[name], part))
    checks += check_tables(coordinator, fit, placed)
    return (*checks, *preflight.check_apart(by_name.values())), tuple(by_name.values())


def check_tables(
    coordinator: Connection, found: Collection[tuple[Found, Part]], placed: Mapping[int, Placement]
) -> tuple[Check, ...]:
    """Check that tables can be captured where they are, and as they are.

    Args:
        coordinator: To the coordinator.
        found: The tables as the coordinator has them, each with what is wanted of it.
        placed: Where they are, by oid.
    """
    role = str((coordinator.execute("SELECT current_user::text").fetchone() or ("",))[0])
    methods = other_storage(coordinator, [f.table for f, _ in found])
    checks: list[Check] = []
    for f, part in found:
        placement = placed[f.table.oid]
        if wrong := [Check(str(f.table), False, finding) for finding in check_placement(f, placement, methods, part)]:
            checks += wrong
        else:
            checks.append(Check(str(f.table), True, f"is {placement}"))
            checks += preflight.check_table(replace(f, sharded=""), role)
    return tuple(checks)


def check_node(connection: Connection, group: int) -> Iterator[Check]:
    """Check one node's settings and the role's privileges there.

    Args:
        connection: To the node.
        group: Its group, as the coordinator has it.
    """
    row: tuple[Any, ...] | None = connection.execute(_NODE).fetchone()
    assert row is not None, "a node knows its group"
    cdc, version, local, role, may_lock, known = row
    major = int(str(version or "0").split(".")[0].split("-")[0])
    yield Check("citus", OLDEST <= major <= NEWEST, f"Citus {version}; {OLDEST} to {NEWEST} can be captured")
    yield Check(
        "change data capture",
        cdc == "on",
        f"citus.enable_change_data_capture is {cdc or 'not known'}",
        "ALTER SYSTEM SET citus.enable_change_data_capture = 'on'; -- then restart this node: without it moves of "
        "shards would be seen as changes, and changes not as those of the tables",
    )
    here = int(local) == group and int(known) > 0
    finding = "is the node that the coordinator knows" if here else f"is another node (group {local}, expected {group})"
    if group == COORDINATOR and not here:
        finding = "is no coordinator: name the coordinator in the connection string"
    yield Check("node", here, finding)
    grant = sql.SQL("GRANT UPDATE ON pg_catalog.pg_dist_transaction TO {};").format(sql.Identifier(str(role)))
    lacking = f"role {role} may {'' if may_lock else 'not '}lock pg_dist_transaction, by which cuts are taken"
    yield Check("cuts", bool(may_lock), lacking, grant.as_string(None))


def check_dropped_columns(coordinator: Connection) -> Iterator[Check]:
    """Check that no table of Citus has had a column dropped.

    Args:
        coordinator: To the coordinator.
    """
    for table, remedy in with_dropped_columns(coordinator).items():
        finding = (
            "had a column dropped: Citus' decoder damages the server's memory when it reads a change of such a table, "
            "captured or not, so that nothing is read. Make the table anew"
        )
        yield Check(table, False, finding, remedy)


def check_placement(found: Found, placement: Placement, methods: Mapping[int, str], part: Part) -> Iterator[str]:
    """Yield reasons against capturing a table where it is.

    Args:
        found: The table as the coordinator has it.
        placement: Where its rows are.
        methods: How tables are stored, in words, by oid: those of which the log has no rows.
        part: What is wanted of it.
    """
    if (method := methods.get(found.table.oid)) is not None:
        yield f"is {method}, whose changes are not in the log as rows"
    if placement.kind == "local":
        return
    if found.table.partitioned and found.table.identity != "d":
        yield (
            f"is a partitioned {placement.kind} table of Citus with a REPLICA IDENTITY of its own, of which Citus does "
            "not tell the workers; it can be captured by its primary key"
        )
    if part != Part():
        yield f"is a {placement.kind} table of Citus, of which COLUMNS and WHERE cannot capture a part yet"
    if placement.kind == "reference" and not placement.captured:
        yield (
            "is a reference table of Citus without a copy on the coordinator, from which its changes are taken: run "
            "SELECT citus_set_coordinator_host('host', port); there"
        )
    by_shard = [s.number for s in placement.captured]
    if len(set(by_shard)) < len(by_shard):
        yield "has shards with several copies (citus.shard_replication_factor), which is not captured"


def _there(remedy: str | None, label: str) -> str | None:
    return None if remedy is None else f"{remedy} -- on {label}"
