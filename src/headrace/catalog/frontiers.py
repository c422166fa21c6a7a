"""Moving frontiers, which only ever go forward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog import versions
from headrace.catalog.publication import FrontierMove, invalid
from headrace.catalog.records import Status
from headrace.catalog.relations import name_condition, not_found, parse_name, relation_ids
from headrace.errors import EnvironmentFault
from headrace.names import TableName


def move(connection: Connection, moves: Sequence[FrontierMove]) -> None:
    """Replace the frontiers of stream tables, which become ACTIVE.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`, when it was dropped meanwhile.
        EnvironmentFault: `DEFINITION_CHANGED`.
        InternalError: `PUBLICATION_INVALID` when one would go back, or beyond what its source has.
    """
    if not moves:
        return
    streams = _lock(connection, [m.stream for m in moves])
    sources = {s for m in moves for s in m.frontier}
    ids, newest = relation_ids(connection, sources), versions.newest_of(connection, sorted(sources))
    heads = {name: version.version for name, version in newest.items()}
    old = _old(connection, [stream_id for stream_id, _ in streams.values()])
    rows = []
    for wanted in moves:
        stream_id = _current(wanted, streams)
        _check(wanted, old[stream_id], heads, ids)
        rows += [{"stream_id": stream_id, "source_id": ids[s], "version": v} for s, v in wanted.frontier.items()]
    _write(connection, [stream_id for stream_id, _ in streams.values()], rows)


def _lock(connection: Connection, names: Sequence[TableName]) -> dict[TableName, tuple[int, int]]:
    """Ids and generations of stream tables, locked in a fixed order."""
    query = (
        sa.select(t.relation.c.name, t.stream_table.c.relation_id, t.stream_table.c.generation)
        .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
        .where(name_condition(names))
        .order_by(t.stream_table.c.relation_id)
        .with_for_update(of=t.stream_table)
    )
    wanted = set(names)
    found = {parse_name(text): (stream_id, generation) for text, stream_id, generation in connection.execute(query)}
    return {name: row for name, row in found.items() if name in wanted}


def _old(connection: Connection, stream_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """What the frontiers were: by stream table's id, by source's id."""
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for stream_id, source_id, version in connection.execute(
        sa.select(t.frontier).where(t.frontier.c.stream_id.in_(stream_ids))
    ):
        found[stream_id][source_id] = version
    return found


def _current(wanted: FrontierMove, streams: Mapping[TableName, tuple[int, int]]) -> int:
    if wanted.stream not in streams:
        raise not_found(wanted.stream)
    stream_id, generation = streams[wanted.stream]
    if wanted.generation is not None and wanted.generation != generation:
        raise EnvironmentFault(
            "DEFINITION_CHANGED",
            f"The definition of {wanted.stream} changed while it was refreshed; nothing was published.",
            detail=f"The refresh computed generation {wanted.generation}; the catalog has {generation}.",
            hint="Refresh again.",
            retryable=True,
        )
    return stream_id


def _check(
    wanted: FrontierMove, old: Mapping[int, int], heads: Mapping[TableName, int], ids: Mapping[TableName, int]
) -> None:
    for source, version in wanted.frontier.items():
        if version > heads.get(source, -1):
            raise invalid(f"{wanted.stream} cannot be at version {version} of {source}, which has no such version.")
        if version < (reached := old.get(ids[source], 0)):
            raise invalid(f"{wanted.stream} is at version {reached} of {source}, and cannot go back to {version}.")


def _write(connection: Connection, stream_ids: Sequence[int], rows: Sequence[Mapping[str, int]]) -> None:
    connection.execute(sa.delete(t.frontier).where(t.frontier.c.stream_id.in_(stream_ids)))
    if rows:
        connection.execute(sa.insert(t.frontier), rows)
    active = {"status": Status.ACTIVE.value, "stopped_code": None, "stopped_reason": None}
    connection.execute(sa.update(t.stream_table).where(t.stream_table.c.relation_id.in_(stream_ids)).values(active))
