"""Keys of mirrors over the rows of several nodes: no two nodes may have the same one.

Each node sees to its own rows only. So after a landing the keys that it added are looked for in the mirror; where the
tables have another key than before, all of its rows are looked at. The node that added one which another node has is
held back, as one that cannot be reached is: its position stays where it is, with all that it committed since, and the
others are landed. So every published state still is a moment of each node.
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


class KeyOnTwoNodes(Exception):
    """Ends writing a landing after which two nodes would have rows of one key.

    Args:
        node: The one that added its row in this landing.
        fault: What the user is told.
    """

    def __init__(self, node: str, fault: EnvironmentFault) -> None:
        super().__init__(node)
        self.node, self.fault = node, fault


def require_unique(
    mirror: Mirror,
    key: SharedKey,
    runner: Runner,
    staged: Callable[[TableName], TableMeta],
    before: Mapping[TableName, TableMeta],
    *,
    whole: bool,
) -> None:
    """Refuse a landing after which two nodes have rows of one key.

    Args:
        mirror: The mirror, as it was written to `staging`.
        key: What must be unique.
        runner: Runs SQL.
        staged: Finds metadata.
        before: The stored tables as they were.
        whole: Look at all rows, as the key was not known to hold before; else at the keys that were added.

    Raises:
        KeyOnTwoNodes: With `KEY_ON_TWO_NODES` (retryable: a row that is moving has left the one node when the next
            landing reads it).
    """
    found = runner.run(twice_sql(mirror, key, staged, before, whole=whole))
    if not found:
        return
    *values, first, second, adding = found[0]
    told = ", ".join(f"{name} = {value}" for name, value in zip(key.columns, values, strict=True))
    fault = EnvironmentFault(
        KEY_ON_TWO_NODES,
        f"{first} and {second} both have a row of {mirror.name} with {told}; nothing of {adding} is landed.",
        detail="The key of a table with shards tells its rows apart over all of them.",
        hint="Delete the row on one of the two servers; one that is moving to the other server lands once it has left "
        "the first. Or create the source with same_key = 'allowed', where the shard is part of the key.",
        retryable=True,
    )
    raise KeyOnTwoNodes(str(adding), fault)


def twice_sql(
    mirror: Mirror,
    key: SharedKey,
    staged: Callable[[TableName], TableMeta],
    before: Mapping[TableName, TableMeta],
    *,
    whole: bool,
) -> str:
    """Return the query of a key that two nodes have, with both nodes, and the one that added it."""
    state, log = staged(mirror.name), staged(mirror.log)
    listed, node = ", ".join(map(quote, key.columns)), quote(key.node)
    rows = rows_sql(mirror.name.within(STAGING), state, state.current_snapshot_id)
    shown = f"SELECT {listed}, min({node}), max({node}), max({node})"
    twice = f"GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    former = before[mirror.log].current_snapshot_id
    if whole or before[mirror.name].current_snapshot_id is None or log.current_snapshot_id == former:
        return f"{shown} FROM {rows} {twice}"
    change = appended_sql(mirror.log.within(STAGING), former, log)
    each = f"SELECT {listed}, {node} FROM {change} GROUP BY {listed}, {node} HAVING sum({WEIGHT}) > 0"
    added = f"SELECT {listed}, max({node}) AS {node} FROM ({each}) GROUP BY {listed}"
    same = " AND ".join(f"s.{quote(c)} = t.{quote(c)}" for c in key.columns)
    listed = ", ".join(f"s.{quote(c)}" for c in key.columns)
    return (
        f"SELECT {listed}, min(s.{node}), max(s.{node}), max(t.{node}) FROM {rows} AS s JOIN ({added}) AS t ON {same} "
        f"GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )
