"""A coordinator and two workers without Citus: plain servers that have those of its catalogs that capture reads.

A shard is the table of its worker, under the table's own name: what is written there is told as the table's, as Citus
does it. So whatever is decided about nodes, cuts and copies runs for real; how Citus moves shards is in `tests/citus`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from kit.logical import LogicalServer, logical_server

CATALOGS = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_transaction (groupid int, gid text);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int);
CREATE SEQUENCE pg_catalog.pg_dist_node_nodeid_seq;
CREATE TABLE pg_catalog.pg_dist_node (groupid int, nodename text, nodeport int, isactive bool DEFAULT true,
    hasmetadata bool DEFAULT true, metadatasynced bool DEFAULT true, noderole text DEFAULT 'primary',
    nodecluster text DEFAULT 'default');
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", partkey text, repmodel "char");
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid int8);
CREATE SEQUENCE pg_catalog.pg_dist_placement_seq;
CREATE TABLE pg_catalog.pg_dist_placement (shardid int8, groupid int,
    placementid int8 DEFAULT nextval('pg_catalog.pg_dist_placement_seq'), shardstate int DEFAULT 1,
    shardlength int8 DEFAULT 0);
CREATE FUNCTION pg_catalog.shard_name(t regclass, int8) RETURNS text LANGUAGE sql AS
    $$ SELECT quote_ident(relname) FROM pg_class WHERE oid = t $$;
CREATE FUNCTION pg_catalog.column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS $$ SELECT $2 $$;
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    VALUES (15000, 'citus', 10, 11, false, '14.0-1');
RESET allow_system_table_mods;
"""


class StandIn:
    """The databases of one cluster, by group; group 0 is the coordinator.

    Args:
        servers: A server for each.
        name: What the databases are called.
    """

    def __init__(self, servers: list[LogicalServer], name: str) -> None:
        self._servers, self._name = list(servers), name
        self.urls = [server.url(name) for server in servers]
        self.nodes: list[psycopg.Connection] = []
        for server in servers:
            self._add(server)

    def join(self, server: LogicalServer, *tables: str) -> None:
        """Add a further worker.

        Args:
            server: Its server.
            tables: What makes the tables that it has from the beginning.
        """
        self._servers.append(server)
        self.urls.append(server.url(self._name))
        self._add(server)
        for statement in tables:
            self.nodes[-1].execute(statement)

    def _add(self, server: LogicalServer) -> None:
        with server.connect("postgres") as db:
            db.execute(f"CREATE DATABASE {self._name}")
            db.execute(f"ALTER DATABASE {self._name} SET citus.enable_change_data_capture = 'on'")
            db.execute(f"ALTER DATABASE {self._name} SET citus.cluster_name = 'default'")
        node = psycopg.connect(server.url(self._name), autocommit=True)
        node.execute(CATALOGS)
        node.execute("INSERT INTO pg_dist_local_group VALUES (%s)", (len(self.nodes),))
        self.nodes.append(node)
        for at in self.nodes:
            at.execute("DELETE FROM pg_dist_node")
            for group, of in enumerate(self._servers[: len(self.nodes)]):
                at.execute("INSERT INTO pg_dist_node VALUES (%s, %s, 5432)", (group, of.host))
            at.execute(f"SELECT setval('pg_dist_node_nodeid_seq', {len(self.nodes)})")

    @property
    def coordinator(self) -> psycopg.Connection:
        """The connection to it."""
        return self.nodes[0]

    def close(self) -> None:
        """Leave; the servers stay."""
        for node in self.nodes:
            node.close()

    def everywhere(self, statement: str) -> None:
        """Run a statement on every node, as Citus does with DDL."""
        for node in self.nodes:
            node.execute(statement)

    def distribute(self, table: str, *groups: int) -> None:
        """Make a table a distributed one, with a shard on each of these nodes."""
        self.coordinator.execute("INSERT INTO pg_dist_partition VALUES (%s::regclass, 'h', 'id', 's')", (table,))
        for group in groups or (1, 2):
            self._shard(table, group)

    def refer(self, table: str, *groups: int) -> None:
        """Make a table a reference table with a copy on each of these nodes."""
        self.coordinator.execute("INSERT INTO pg_dist_partition VALUES (%s::regclass, 'n', NULL, 't')", (table,))
        self._shard(table, *(groups or (0, 1, 2)))

    def move(self, table: str, group: int, to: int) -> None:
        """Say that the shard of one node is on another one now."""
        self.coordinator.execute(
            "UPDATE pg_dist_placement SET groupid = %s, placementid = nextval('pg_dist_placement_seq') "
            "WHERE groupid = %s AND shardid IN (SELECT shardid FROM pg_dist_shard WHERE logicalrelid = %s::regclass)",
            (to, group, table),
        )

    def withdraw(self, table: str, group: int) -> None:
        """Say that a node has no copy any more."""
        self.coordinator.execute(
            "DELETE FROM pg_dist_placement WHERE groupid = %s "
            "AND shardid IN (SELECT shardid FROM pg_dist_shard WHERE logicalrelid = %s::regclass)",
            (group, table),
        )

    def truth(self, table: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table on the nodes that have its shards."""
        listed = (
            "SELECT DISTINCT groupid FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) "
            "WHERE logicalrelid = %s::regclass"
        )
        groups = [int(group) for (group,) in self.coordinator.execute(listed, (table,)).fetchall()] or [0]
        return Counter(row for group in groups for row in self.nodes[group].execute(f"SELECT * FROM {table}"))

    def _shard(self, table: str, *groups: int) -> None:
        of_all = "SELECT coalesce(max(shardid), 100) + 1 FROM pg_dist_shard"
        ((number,),) = self.coordinator.execute(of_all).fetchall()
        self.coordinator.execute("INSERT INTO pg_dist_shard VALUES (%s::regclass, %s)", (table, number))
        for group in groups:
            self.coordinator.execute("INSERT INTO pg_dist_placement VALUES (%s, %s)", (number, group))


@contextmanager
def stand_in_servers(count: int = 3) -> Iterator[list[LogicalServer]]:
    """Servers for clusters, gone at the end."""
    with ExitStack() as stack:
        yield [stack.enter_context(logical_server()) for _ in range(count)]
