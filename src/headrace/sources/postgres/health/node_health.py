"""Values that tell how a source stands at one server, or at the nodes of a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.health.backlog import Backlog
from headrace.sources.postgres.health.slot_outlook import Look, as_row
from headrace.sources.postgres.server import Server
from headrace.sources.postgres.wal.slots import Slot, SlotUse
from headrace.sources.source_kind import Json


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The slot of one node.

    Args:
        node: The node, as host and port.
        slot_status: `reserved`, `extended`, `unreserved` or `lost`; None when there is no slot.
        lag_bytes: Write-ahead log written there since what is landed; None where the node was not landed yet, or has no
            slot or a lost one.
    """

    node: str
    slot_status: str | None
    lag_bytes: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a source at its server.

    Args:
        lag: Bytes of write-ahead log since what is landed; None before the first landing, and under triggers.
        slot: Its slot; None when there is none.
        waiting: Captured rows in change tables that are not landed; None where no triggers capture.
        kept: Bytes of change tables; None where there are none.
        backlog: The transactions that wait; None where they cannot be counted.
        use: Who reads the slot, and what reading it has cost; None when there is none.
        look: What is remembered to tell how fast things change; None when there is no slot to lose.
        nodes: The nodes of a cluster, one by one; none of a single server.
        node: The node of a cluster that slot, use and look are of.
        looks: Looks at the nodes of a cluster.
    """

    lag: int | None
    slot: Slot | None
    waiting: int | None = None
    kept: int | None = None
    backlog: Backlog | None = None
    use: SlotUse | None = None
    look: Look | None = None
    nodes: tuple[NodeHealth, ...] = ()
    node: str | None = None
    looks: Mapping[str, Look] = field(default_factory=dict)

    @property
    def remembered(self) -> Json | None:
        """Return what the catalog remembers of it."""
        if self.node is not None:
            return by_node(self.looks)
        return None if self.look is None else as_row(self.look)


def by_node(looks: Mapping[str, Look]) -> Json | None:
    """Return looks at nodes as the catalog remembers them; None where there is nothing to lose."""
    return {NODES: {node: as_row(look) for node, look in looks.items()}} if looks else None


def look_at(now: Server, slot: Slot | None, use: SlotUse | None) -> Look | None:
    """Return what is remembered of a slot; None when there is none to lose.

    Args:
        now: Its server.
        slot: The slot.
        use: Who reads it.
    """
    if slot is None or slot.lost or use is None:
        return None
    return Look(now.clock, now.system, now.position, slot.safe, slot.kept, use.idle, use.patience)
