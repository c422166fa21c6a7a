"""Looks at the slots of all nodes of a cluster without changing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.sources.postgres.citus.cluster import Cluster, cluster
from headrace.sources.postgres.citus.cluster_catalog import COORDINATOR
from headrace.sources.postgres.health import backlog
from headrace.sources.postgres.health.backlog import Backlog
from headrace.sources.postgres.health.node_health import Health, NodeHealth, look_at
from headrace.sources.postgres.health.slot_outlook import Look
from headrace.sources.postgres.server import server
from headrace.sources.postgres.wal.slots import Slot, find_slot, slot_use, touch


def cluster_health(options: Mapping[str, Any], position: Mapping[str, Any]) -> Health:
    """Read how a source stands at the nodes of its cluster.

    Args:
        options: The source's options.
        position: The cut that is landed.

    Returns:
        Sums over all nodes, and the slot that is nearest to being lost, or keeps most log.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
    """
    with cluster(options["url"]) as of:
        found = {group: _node(of, group, options["slot"], position) for group in sorted(of.connections)}
        worst = min(found, key=lambda group: _room(found[group].slot))
        names = {group: _name(of, group) for group in found}
    nodes = tuple(NodeHealth(names[g], h.slot.status if h.slot else None, h.lag) for g, h in found.items())
    waits = [h.backlog for h in found.values()]
    counted = [b for b in waits if b is not None]
    together = _together(counted) if len(counted) == len(waits) else None
    here = found[worst]
    lag = sum(h.lag or 0 for h in found.values())
    looks = {names[g]: h.look for g, h in found.items() if h.look is not None}
    return Health(
        lag, here.slot, backlog=together, use=here.use, look=here.look, nodes=nodes, node=names[worst], looks=looks
    )


def cluster_look(options: Mapping[str, Any], idle_share: float) -> dict[str, Look]:
    """Look at the slots of all nodes that have one.

    Args:
        options: The source's options.
        idle_share: After this part of its patience, a server is made to count the slot as read; 0 for never.
    """
    found: dict[str, Look] = {}
    with cluster(options["url"]) as of:
        for group, connection in of.connections.items():
            slot, use = find_slot(connection, options["slot"]), slot_use(connection, options["slot"])
            if idle_share and use and use.patience and use.idle and use.idle > use.patience * idle_share:
                touch(connection, options["slot"])
                use = slot_use(connection, options["slot"])
            if (seen := look_at(server(connection), slot, use)) is not None:
                found[_name(of, group)] = seen
    return found


def _name(of: Cluster, group: int) -> str:
    return "coordinator" if group == COORDINATOR else str(of.nodes[group])


def _node(of: Cluster, group: int, name: str, position: Mapping[str, Any]) -> Health:
    connection = of.connections[group]
    now, slot, use = server(connection), find_slot(connection, name), slot_use(connection, name)
    at = position["nodes"].get(str(group))
    if slot is None or slot.lost or at is None:
        return Health(None, slot, use=use)
    waits = backlog.in_log(connection, name, name, at["lsn"])
    return Health(max(0, now.position - at["lsn"]), slot, backlog=waits, use=use, look=look_at(now, slot, use))


def _room(slot: Slot | None) -> tuple[float, int]:
    """Return bytes until a slot is lost; without a limit, that which keeps most comes first."""
    if slot is None or slot.lost:
        return -1, 0
    return float("inf") if slot.safe is None else slot.safe, -slot.kept


def _together(waits: Sequence[Backlog]) -> Backlog:
    """Add up what waits; a distributed transaction counts once on every node that it changed."""
    seconds = [b.seconds for b in waits if b.seconds is not None]
    return Backlog(sum(b.transactions for b in waits), any(b.more for b in waits), max(seconds) if seconds else None)
