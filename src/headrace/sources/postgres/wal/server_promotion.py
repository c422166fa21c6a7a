"""Decides whether capture can continue at a promoted replica or a restored backup.

Both begin a timeline of their own, which shares the log of the former one up to where it left it. What was landed up to
there is in both. So nothing is missed where the slot came along (PostgreSQL 17 keeps failover slots in step on
replicas) and the new timeline left no earlier than what is landed; otherwise the mirrors have transactions that the
server has not, or changes were not kept. Whether to go on the user has decided
before, by making the slot a failover slot.
"""

from __future__ import annotations

from headrace.errors import UserError
from headrace.sources.capture import Json
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.server import Server
from headrace.sources.postgres.wal.slots import Slot, lsn_of, position_of

FAILOVER_SLOTS = 170000
"""From this version on a slot can be kept in step on replicas."""


def require_goes_on(url: str, now: Server, position: Json, slot: Slot | None, failover: bool) -> str | None:
    """Refuse a server whose timeline's history lacks changes that are landed.

    Args:
        url: The connection string.
        now: The server.
        position: What is landed.
        slot: The slot, as it is there.
        failover: The slot is a failover slot.

    Returns:
        What the user is told; None where nothing has happened.

    Raises:
        UserError: `SOURCE_CHANGED`.
    """
    if now.system == position["system"] and now.timeline == position["timeline"]:
        return None
    if now.system != position["system"] or not failover:
        raise other_server(now, position)
    moved = _moved(now, position)
    left = left_at(_history(url, now.timeline), position["timeline"])
    if left is None or left < position["lsn"]:
        gone = "a timeline that it does not come from" if left is None else f"{lsn_of(position['lsn'])} was landed"
        at = "" if left is None else f" at {lsn_of(left)}"
        raise stop_reasons.changed(
            f"The source's server has changed: {moved}, and it lacks transactions that were landed: it left the former "
            f"timeline{at}, and {gone}."
        )
    if slot is None or slot.lost:
        raise stop_reasons.changed(
            f"The source's server has changed: {moved}, and the replication slot did not come along."
        )
    missed = "Its slot exists there too, and nothing was missed; the source continues."
    return f"The source's server has changed: {moved}. {missed}"


def other_server(now: Server, position: Json) -> UserError:
    """Return the error for a server that is on another timeline, or another cluster.

    Args:
        now: The server.
        position: Up to where the source is landed, with the server that it was landed from.
    """
    if now.system != position["system"]:
        return stop_reasons.changed(
            "The source's server is another cluster: the connection string leads elsewhere, or it was upgraded by "
            "pg_upgrade, or made anew from a dump."
        )
    return stop_reasons.changed(f"The source's server is not the one it was: {_moved(now, position)}.")


def _moved(now: Server, position: Json) -> str:
    return f"a replica was promoted or a backup restored (timeline {position['timeline']} became {now.timeline})"


def left_at(history: str, timeline: int) -> int | None:
    """Return the position at which a timeline's log was left for the next one.

    Args:
        history: The history file of the present timeline.
        timeline: The former timeline.

    Returns:
        The position as a number; None where the present timeline does not descend from it.
    """
    for line in history.splitlines():
        parts = line.split()
        if len(parts) >= 2 and parts[0] == str(timeline):
            return position_of(parts[1])
    return None


def _history(url: str, timeline: int) -> str:
    """Return the history file of a timeline, which replicas ask for, too."""
    with connected(url, replication=True) as connection:
        row = connection.execute(f"TIMELINE_HISTORY {timeline:d}").fetchone()
    assert row is not None, "the command returns a row"
    return row[1].decode() if isinstance(row[1], bytes) else str(row[1])
