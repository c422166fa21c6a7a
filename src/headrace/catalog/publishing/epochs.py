"""Epochs of groups: how often stream tables were published together.

A group is its members, and they come and go. So each carries the epoch of the last publication that it had part in,
and a group's next epoch is one more than the greatest of its members': it grows whoever joins, leaves or gives the
group its name, and begins anew only where all members are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import GroupEpoch, PublicationRecord
from headrace.catalog.relations import parse_name
from headrace.names import TableName


def count(
    connection: Connection,
    groups: Iterable[Sequence[TableName]],
    ids: Mapping[TableName, int],
    publication_id: int,
) -> dict[TableName, int]:
    """Count a publication for each of some groups.

    Args:
        connection: Inside the transaction.
        groups: Each by its members.
        ids: Of members that exist.
        publication_id: The publication.

    Returns:
        The new epoch, by member.
    """
    counted: dict[TableName, int] = {}
    for members in groups:
        known = {name: ids[name] for name in members if name in ids}
        own = t.epoch.c.stream_id.in_(list(known.values()))
        epoch = 1 + (connection.execute(sa.select(sa.func.max(t.epoch.c.epoch)).where(own)).scalar() or 0)
        connection.execute(sa.delete(t.epoch).where(own))
        rows = [{"stream_id": row, "epoch": epoch, "publication_id": publication_id} for row in known.values()]
        connection.execute(sa.insert(t.epoch), rows)
        counted |= dict.fromkeys(known, epoch)
    return counted


def read(connection: Connection) -> dict[TableName, GroupEpoch]:
    """Return, by stream table, the last publication that it had part in as member of a group."""
    query = (
        sa.select(t.relation.c.name, t.epoch.c.epoch, t.publication)
        .join(t.relation, t.relation.c.id == t.epoch.c.stream_id)
        .join(t.publication, t.publication.c.id == t.epoch.c.publication_id)
    )
    rows = connection.execute(query)
    return {parse_name(text): GroupEpoch(epoch, PublicationRecord(*rest)) for text, epoch, *rest in rows}
