"""Connections to all nodes of a cluster.

The coordinator's connection string leads to it; the other nodes are those of `pg_dist_node`, with the same user and
database. Nothing that is installed is propagated by Citus: publication and slot are made on each node by itself, which
works alike for tables that Citus does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from headrace.errors import HeadraceError, UserError
from headrace.sources.postgres.citus.cluster_catalog import COORDINATOR, ClusterNode, nodes
from headrace.sources.postgres.connection import Connection, at_node, breakable, connected, faults

SETTINGS = "-c citus.enable_ddl_propagation=off -c synchronous_commit=local"
"""Of every connection; the second so that a mark is flushed with the commit that follows it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that is connected to.

    Args:
        nodes: Its nodes by group.
        urls: Their connection strings; may hold passwords.
        connections: To them.
    """

    nodes: Mapping[int, ClusterNode]
    urls: Mapping[int, str]
    connections: Mapping[int, Connection]

    @property
    def coordinator(self) -> Connection:
        """Return the connection to the coordinator."""
        return self.connections[COORDINATOR]

    @contextmanager
    def at(self, group: int) -> Iterator[Connection]:
        """Yield the connection to a node; errors inside the block say which node they are about.

        An interrupt of the thread that is inside breaks it.

        Args:
            group: The node.
        """
        connection = self.connections[group]
        with _of_node(self.nodes[group]) if group != COORDINATOR else nullcontext(), faults(), breakable(connection):
            yield connection


@contextmanager
def cluster(url: str) -> Iterator[Cluster]:
    """Connect to all nodes of a cluster.

    Args:
        url: The coordinator's connection string.

    Raises:
        UserError: `SOURCE_NOT_READY` where a node cannot take part.
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`, with the node.
    """
    with ExitStack() as stack:
        urls = {COORDINATOR: at_node(url, options=SETTINGS)}
        connections = {COORDINATOR: stack.enter_context(connected(urls[COORDINATOR]))}
        found = {node.group: node for node in nodes(connections[COORDINATOR])}
        if disabled := [str(node) for node in found.values() if not node.active]:
            raise _not_ready(
                f"Nodes {', '.join(disabled)} of the Citus cluster are disabled, so that their rows are not known.",
                "Run on the coordinator: SELECT citus_activate_node('host', port);",
            )
        for group, node in found.items():
            if group != COORDINATOR:
                urls[group] = at_node(url, node.host, node.port, SETTINGS)
                with _of_node(node):
                    connections[group] = stack.enter_context(connected(urls[group]))
        found.setdefault(COORDINATOR, ClusterNode(COORDINATOR, "coordinator", 0, True, True))
        yield Cluster(found, urls, connections)


@contextmanager
def _of_node(node: ClusterNode) -> Iterator[None]:
    """Say which node an error is about."""
    try:
        yield
    except HeadraceError as error:
        error.message = f"Node {node} of the Citus cluster: {error.message}"
        error.args = (error.code, error.message)
        raise


def _not_ready(message: str, hint: str) -> UserError:
    return UserError("SOURCE_NOT_READY", f"{message} Nothing was changed.", hint=hint)
