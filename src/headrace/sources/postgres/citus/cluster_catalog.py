"""Reads Citus' catalogs: the nodes of a cluster, and where the rows of its tables are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from psycopg import sql

from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable

COORDINATOR = 0
"""The coordinator's group."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A primary node of the cluster.

    Args:
        group: Its group, which stays the same when a replica takes its place.
        host: Where the other nodes find it.
        port: Its port there.
        active: It takes part; `citus_disable_node` ends that.
        synced: It has the cluster's metadata, and they are up to date.
    """

    group: int
    host: str
    port: int
    active: bool
    synced: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard where it is.

    Args:
        number: The shard.
        group: The node that has it.
        placement: Another one whenever it is moved.
        relation: Its table there, quoted, with the schema.
        size: Its bytes when Citus last looked.
    """

    number: int
    group: int
    placement: int
    relation: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of a table's rows.

    Args:
        kind: `distributed`, `reference`, `managed` (in one shard, as a local table that Citus manages), or `local`.
        column: The distribution column; None where there is none.
        shards: Its shards; none for a local table.
    """

    kind: str
    column: str | None = None
    shards: tuple[Shard, ...] = field(default=())

    @property
    def captured(self) -> tuple[Shard, ...]:
        """Return the shards that are captured: of a reference table the coordinator's copy."""
        return tuple(s for s in self.shards if self.kind != "reference" or s.group == COORDINATOR)

    def __str__(self) -> str:
        """Return it in words, with what belongs to a table in front of them."""
        if self.kind == "distributed":
            return f"distributed by {self.column}, {len(self.shards)} shards" if self.column else "distributed, whole"
        words = {"reference": "a reference table", "managed": "a table in one shard of Citus"}
        return words.get(self.kind, "a local table of the coordinator")

    @property
    def mark(self) -> str:
        """Return a text that changes with whatever may put rows elsewhere."""
        return " ".join([self.kind, *(f"{s.number}:{s.group}:{s.placement}" for s in self.captured)])


LOCAL = Placement("local")

_NODES = """
SELECT groupid, nodename, nodeport, isactive, hasmetadata AND metadatasynced
FROM pg_catalog.pg_dist_node WHERE noderole = 'primary' AND nodecluster = current_setting('citus.cluster_name')
ORDER BY groupid
"""


def nodes(connection: Connection) -> tuple[ClusterNode, ...]:
    """Return the primary nodes, the coordinator first if it is among them."""
    rows = connection.execute(_NODES).fetchall()
    return tuple(
        ClusterNode(int(str(group)), str(host), int(str(port)), bool(active), bool(synced))
        for group, host, port, active, synced in rows
    )


_ADDED = "SELECT coalesce(pg_sequence_last_value('pg_catalog.pg_dist_node_nodeid_seq'), 0)"


def nodes_added(connection: Connection) -> int:
    """Return how many nodes the cluster has had; 0 where the role may not know."""
    row = connection.execute(_ADDED).fetchone()
    return int(str(row[0])) if row else 0


_PLACEMENTS = """
SELECT p.logicalrelid::oid::bigint, p.partmethod::text, p.repmodel::text,
    CASE WHEN p.partkey IS NOT NULL THEN pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) END,
    n.nspname, s.shardid, pg_catalog.shard_name(p.logicalrelid, s.shardid), l.groupid, l.placementid, l.shardlength
FROM pg_catalog.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN (pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_dist_placement l ON l.shardid = s.shardid
        AND l.shardstate = 1) ON s.logicalrelid = p.logicalrelid
WHERE p.logicalrelid::oid = ANY(%s) ORDER BY s.shardid, l.groupid
"""


def placements(connection: Connection, oids: Collection[int]) -> dict[int, Placement]:
    """Return where tables are, by oid; a table that Citus does not know is local.

    Args:
        connection: To the coordinator.
        oids: The tables.
    """
    kinds: dict[int, tuple[str, str | None]] = {}
    shards: dict[int, list[Shard]] = {}
    for row in connection.execute(_PLACEMENTS, (list(oids),)).fetchall():
        oid, method, model, column, schema, number, name, group, placement, size = row
        found = shards.setdefault(int(str(oid)), [])
        kinds[int(str(oid))] = (_kind(str(method), str(model)), None if column is None else str(column))
        if number is not None and group is not None:
            relation = _relation(str(schema), str(name))
            found.append(Shard(int(str(number)), int(str(group)), int(str(placement)), relation, int(str(size or 0))))
    return {oid: Placement(*kinds[oid], tuple(shards[oid])) if oid in kinds else LOCAL for oid in oids}


def _kind(method: str, model: str) -> str:
    if method != "n":
        return "distributed"
    return "reference" if model == "t" else "managed"


def _relation(schema: str, name: str) -> str:
    """Return a shard's name with its schema, which `shard_name` leaves out for `public`."""
    if schema != "public":
        return name
    return f"{sql.Identifier(schema).as_string(None)}.{name}"


_DROPPED = """
SELECT DISTINCT n.nspname, c.relname, p.partmethod::text, p.repmodel::text,
    CASE WHEN p.partkey IS NOT NULL THEN pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) END
FROM pg_catalog.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE a.attisdropped AND a.attnum > 0 AND current_setting('server_version_num')::int >= 170000 ORDER BY 1, 2
"""


def with_dropped_columns(connection: Connection) -> dict[str, str]:
    """Return Citus' tables that had a column dropped, with the SQL that makes them anew.

    From PostgreSQL 17 on Citus' decoder spoils the server's memory when it reads a change of such a table, whether the
    table is published or not (citusdata/citus#8844): nothing may be read from any slot then.
    """
    found = {}
    for schema, table, method, model, column in connection.execute(_DROPPED).fetchall():
        name = sql.Identifier(str(schema), str(table)).as_string(None).replace("'", "''")
        again = f"create_distributed_table('{name}', '{column}')"
        if _kind(str(method), str(model)) != "distributed":
            again = f"create_{'reference_table' if model == 't' else 'distributed_table'}('{name}'" + (
                ")" if model == "t" else ", NULL)"
            )
        found[f"{schema}.{table}"] = f"SELECT undistribute_table('{name}'); SELECT {again};"
    return found


_METHODS = """
SELECT c.oid::bigint, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.oid = ANY(%s) AND c.relkind <> 'p' AND a.amname <> 'heap'
"""
"""A partitioned table can have one, too (17 and newer): that of partitions to come, while it has no rows itself."""


def other_storage(connection: Connection, tables: Collection[RemoteTable]) -> dict[int, str]:
    """Return in words how tables are stored, by oid, of those whose rows are not all in heaps.

    Args:
        connection: To the coordinator.
        tables: The tables.
    """
    oids = [oid for table in tables for oid in (table.oid, *table.parts)]
    methods = {int(str(oid)): str(name) for oid, name in connection.execute(_METHODS, (oids,)).fetchall()}
    found = {}
    for table in tables:
        if table.oid in methods:
            found[table.oid] = f"stored as {methods[table.oid]}"
        elif of_parts := sorted({methods[part] for part in table.parts if part in methods}):
            found[table.oid] = f"partitioned, with a partition stored as {of_parts[0]}"
    return found


def marks(placed: Mapping[int, Placement]) -> dict[str, str]:
    """Return where tables are, as positions have it: a text by oid."""
    return {str(oid): placement.mark for oid, placement in placed.items()}
