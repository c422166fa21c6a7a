"""Moving frontiers, which only ever go forward."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.definitions.stored_details import stored_values
from headrace.catalog.many_rows import insert_rows
from headrace.catalog.publishing.publication import FrontierMove, invalid
from headrace.catalog.records import Status
from headrace.catalog.relations import RelationHead, not_found
from headrace.errors import EnvironmentFault
from headrace.names import TableName


def move(connection: Connection, moves: Sequence[FrontierMove], known: Mapping[TableName, RelationHead]) -> None:
    """Replace the frontiers of stream tables, which become ACTIVE.

    Args:
        connection: Inside the transaction.
        moves: The new frontiers.
        known: The relations that `moves` name, with the versions they have by now.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`, when it was dropped meanwhile.
        EnvironmentFault: `DEFINITION_CHANGED`.
        InternalError: `PUBLICATION_INVALID` when one would go back, or beyond what its source has.
    """
    if not moves:
        return
    generations = _lock(connection, [known[m.stream].id for m in moves if m.stream in known])
    old = _old(connection, list(generations))
    rows = []
    for wanted in moves:
        if wanted.stream not in known or (stream_id := known[wanted.stream].id) not in generations:
            raise not_found(wanted.stream)
        _check_generation(wanted, generations[stream_id])
        _check_versions(wanted, old[stream_id], known)
        rows += [{"stream_id": stream_id, "source_id": known[s].id, "version": v} for s, v in wanted.frontier.items()]
    _write(connection, list(generations), rows)
    for behind in (False, True):
        _note_companions(connection, [known[m.stream].id for m in moves if m.companion_behind is behind], behind=behind)
    for wanted in moves:
        if wanted.details is not None:
            own = t.stream_table.c.relation_id == known[wanted.stream].id
            connection.execute(sa.update(t.stream_table).where(own).values(stored_values(wanted.details)))


def _lock(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """Return generations of stream tables by id, the rows locked in a fixed order."""
    query = (
        sa.select(t.stream_table.c.relation_id, t.stream_table.c.generation)
        .where(t.stream_table.c.relation_id.in_(ids))
        .order_by(t.stream_table.c.relation_id)
        .with_for_update()
    )
    return {stream_id: generation for stream_id, generation in connection.execute(query)}


def _old(connection: Connection, stream_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """Return the former frontiers: by stream table's id, by source's id."""
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for stream_id, source_id, version in connection.execute(
        sa.select(t.frontier).where(t.frontier.c.stream_id.in_(stream_ids))
    ):
        found[stream_id][source_id] = version
    return found


def _check_generation(wanted: FrontierMove, generation: int) -> None:
    if wanted.generation is not None and wanted.generation != generation:
        raise EnvironmentFault(
            "DEFINITION_CHANGED",
            f"The definition of {wanted.stream} changed while it was refreshed; nothing was published.",
            detail=f"The refresh computed generation {wanted.generation}; the catalog has {generation}.",
            hint="Refresh again.",
            retryable=True,
        )


def _check_versions(wanted: FrontierMove, old: Mapping[int, int], known: Mapping[TableName, RelationHead]) -> None:
    for source, version in wanted.frontier.items():
        if source not in known or not 0 <= version <= known[source].head:
            raise invalid(f"{wanted.stream} cannot be at version {version} of {source}, which has no such version.")
        if version < (reached := old.get(known[source].id, 0)):
            raise invalid(f"{wanted.stream} is at version {reached} of {source}, and cannot go back to {version}.")


def _write(connection: Connection, stream_ids: Sequence[int], rows: Sequence[Mapping[str, int]]) -> None:
    connection.execute(sa.delete(t.frontier).where(t.frontier.c.stream_id.in_(stream_ids)))
    insert_rows(connection, t.frontier, rows)
    active = {"status": Status.ACTIVE.value, "stopped_code": None, "stopped_reason": None}
    own, status = t.stream_table.c.relation_id.in_(stream_ids), t.stream_table.c.status
    changed = sa.or_(status != Status.ACTIVE.value, t.stream_table.c.stopped_code.is_not(None))
    connection.execute(sa.update(t.stream_table).where(own, changed).values(active))


def _note_companions(connection: Connection, stream_ids: Sequence[int], *, behind: bool) -> None:
    differs = t.stream_table.c.companion_behind.is_distinct_from(behind)
    if stream_ids:
        own = t.stream_table.c.relation_id.in_(stream_ids)
        connection.execute(sa.update(t.stream_table).where(own, differs).values(companion_behind=behind))
