"""Pins: tags on users' tables that keep what a frontier needs from being expired by anyone."""

from __future__ import annotations

from collections.abc import Set

from headrace.lake.metadata import TableMeta
from headrace.names import TableName, quote

PREFIX = "headrace_"
"""Tags of this prefix are ours; the rest of the name is the snapshot."""


def plan_pins(table: TableName, meta: TableMeta, needed: Set[int]) -> tuple[str, ...]:
    """Return statements that make the pinned snapshots of a table exactly the needed ones.

    Each is a commit to the table's metadata, so nothing is stated that is so already. New pins come before old ones
    are dropped: there is no moment at which a needed snapshot is unprotected.

    Args:
        table: A user's table.
        meta: Its metadata.
        needed: Snapshots some frontier refers to; those that have expired already are ignored.
    """
    pinned = {name: snapshot for name, snapshot in meta.refs.items() if name.startswith(PREFIX)}
    missing = sorted(s for s in needed if s in meta.snapshots and pinned.get(pin_name(s)) != s)
    surplus = sorted(name for name, snapshot in pinned.items() if snapshot not in needed)
    alter = f"ALTER TABLE {table.sql}"
    return (
        *(f"{alter} CREATE OR REPLACE TAG {quote(pin_name(s))} AS OF VERSION {s}" for s in missing),
        *(f"{alter} DROP TAG IF EXISTS {quote(name)}" for name in surplus),
    )


def pin_name(snapshot: int) -> str:
    """Return the tag that pins a snapshot."""
    return f"{PREFIX}{snapshot}"
