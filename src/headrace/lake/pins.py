"""Pins: tags on users' tables that keep what a frontier needs from being expired by anyone."""

from __future__ import annotations

from collections.abc import Set

from headrace.lake.metadata import TableMeta
from headrace.names import TableName, quote

FORMER = "headrace_"
"""Tags of this prefix, before a snapshot, were of every project; they said nothing of whose they were."""


def plan_pins(
    table: TableName, meta: TableMeta, needed: Set[int], mark: str, seen: Set[int] = frozenset()
) -> tuple[str, ...]:
    """Return statements that make the snapshots that a project pins exactly the needed ones.

    Each is a commit to the table's metadata, so nothing is stated that is so already. New pins come before old ones
    are dropped: there is no moment at which a needed snapshot is unprotected.

    Args:
        table: A user's table.
        meta: Its metadata.
        needed: Snapshots some frontier refers to; those that have expired already are ignored.
        mark: Tells the project's pins from those of others that read the table.
        seen: Snapshots that the project has seen, whose tags of the former names are taken for its own.
    """
    wanted = {pin_name(s, mark): s for s in needed if s in meta.snapshots}
    former = former_pins(meta)
    own = {name: s for name, s in meta.refs.items() if name.startswith(pin_name("", mark)) or former.get(name) in seen}
    missing = sorted(name for name, snapshot in wanted.items() if own.get(name) != snapshot)
    surplus = sorted(own.keys() - wanted.keys())
    alter = f"ALTER TABLE {table.sql}"
    return (
        *(f"{alter} CREATE OR REPLACE TAG {quote(name)} AS OF VERSION {wanted[name]}" for name in missing),
        *(f"{alter} DROP TAG IF EXISTS {quote(name)}" for name in surplus),
    )


def pin_name(snapshot: int | str, mark: str) -> str:
    """Return the tag that pins a snapshot.

    It does not begin as the former ones did: versions of Headrace that set those drop all that do.
    """
    return f"headrace-{mark}-{snapshot}"


def former_pins(meta: TableMeta) -> dict[str, int]:
    """Return the tags that were named without their project, and the snapshots they pin."""
    return {name: snapshot for name, snapshot in meta.refs.items() if name == f"{FORMER}{snapshot}"}
