"""Keys of mirrors over the rows of several nodes: no two nodes may have the same one.

Each node sees to its own rows only. So after a landing the keys that it added are looked for in the mirror.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.catalog import Mirror
from headrace.errors import EnvironmentFault
from headrace.lake.metadata import TableMeta
from headrace.names import STAGING, WEIGHT, TableName, quote
from headrace.ports import Runner
from headrace.sources.capture import SharedKey
from headrace.sources.lakehouse.changes_sql import appended_sql, rows_sql

KEY_ON_TWO_NODES = "KEY_ON_TWO_NODES"


def require_unique(
    mirror: Mirror,
    key: SharedKey,
    runner: Runner,
    staged: Callable[[TableName], TableMeta],
    before: Mapping[TableName, TableMeta],
) -> None:
    """Refuse a landing after which two nodes have rows of one key.

    Args:
        mirror: The mirror, as it was written to `staging`.
        key: What must be unique.
        runner: Runs SQL.
        staged: Finds metadata.
        before: The stored tables as they were.

    Raises:
        EnvironmentFault: `KEY_ON_TWO_NODES` (retryable: a row that is moving has left the one node when the next
            landing reads it).
    """
    found = runner.run(twice_sql(mirror, key, staged, before))
    if not found:
        return
    *values, first, second = found[0]
    told = ", ".join(f"{name} = {value}" for name, value in zip(key.columns, values, strict=True))
    raise EnvironmentFault(
        KEY_ON_TWO_NODES,
        f"{first} and {second} both have a row of {mirror.name} with {told}; nothing was landed.",
        detail="The key of a table with shards tells its rows apart over all of them.",
        hint="Delete the row on one of the two servers; one that is moving to the other server lands once it has left "
        "the first. Or create the source with same_key = 'allowed', where the shard is part of the key.",
        retryable=True,
    )


def twice_sql(
    mirror: Mirror,
    key: SharedKey,
    staged: Callable[[TableName], TableMeta],
    before: Mapping[TableName, TableMeta],
) -> str:
    """Return the query of a key that two nodes have, with both nodes."""
    state, log = staged(mirror.name), staged(mirror.log)
    listed, node = ", ".join(map(quote, key.columns)), quote(key.node)
    rows = rows_sql(mirror.name.within(STAGING), state, state.current_snapshot_id)
    shown = f"SELECT {listed}, min({node}), max({node})"
    twice = f"GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    former = before[mirror.log].current_snapshot_id
    if before[mirror.name].current_snapshot_id is None or log.current_snapshot_id == former:
        return f"{shown} FROM {rows} {twice}"
    change = appended_sql(mirror.log.within(STAGING), former, log)
    added = f"SELECT {listed} FROM {change} GROUP BY {listed}, {node} HAVING sum({WEIGHT}) > 0"
    same = " AND ".join(f"s.{quote(c)} = t.{quote(c)}" for c in key.columns)
    listed = ", ".join(f"s.{quote(c)}" for c in key.columns)
    return (
        f"SELECT {listed}, min(s.{node}), max(s.{node}) FROM {rows} AS s LEFT SEMI JOIN ({added}) AS t ON {same} "
        f"GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )
