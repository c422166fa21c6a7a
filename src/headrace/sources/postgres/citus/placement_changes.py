"""Decides which tables are copied again since their rows moved between nodes.

Pure. Between two cuts a shard may have moved, or been split. What the nodes' streams say of it is enough if every node
that had a shard at any time between had a slot all the time, and no shard has gone: Citus emits nothing for a
move, each change comes from the node that had the shard then, and no row is touched on two nodes (`touched_twice`; the
order of their changes would not be known). Otherwise the table is copied at the new cut, and its readers receive the
difference, in which a moved row does not occur.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from headrace.sources.postgres.wal.net_changes import Key


def moved(before: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    """Return the tables whose placement changed, by oid.

    Args:
        before: Marks of placements at the last cut, by oid.
        now: The same at this one.
    """
    return frozenset(oid for oid, mark in now.items() if before.get(oid) != mark)


def not_followed(before: Mapping[str, str], now: Mapping[str, str], *, same_nodes: bool) -> frozenset[str]:
    """Return the tables that the streams do not tell enough of, by oid.

    Args:
        before: Marks of placements at the last cut, by oid.
        now: The same at this one.
        same_nodes: The cluster has had the same nodes all the time.
    """
    return frozenset(oid for oid in moved(before, now) if not (same_nodes and _plain_moves(before.get(oid), now[oid])))


def _plain_moves(before: str | None, now: str) -> bool:
    """Return whether the same shards are there, each where it was or on another node.

    A shard with another placement on the same node was elsewhere meanwhile.
    """
    if before is None:
        return False
    (kind, *old), (kind_now, *new) = before.split(" "), now.split(" ")
    places, places_now = _by_shard(old), _by_shard(new)
    return (
        kind == kind_now
        and places.keys() == places_now.keys()
        and all(places[s] == at or places[s][0] != at[0] for s, at in places_now.items())
    )


def _by_shard(places: Iterable[str]) -> dict[str, tuple[str, str]]:
    found = {}
    for place in places:
        shard, group, placement = place.split(":")
        found[shard] = (group, placement)
    return found


def touched_twice(by_node: Sequence[Collection[Key] | None]) -> bool:
    """Return whether a row may have been changed on more than one node.

    Args:
        by_node: The touched keys of a table, for each node that changed it; None where they are not known, as of a
            table without a key.
    """
    if None in by_node:
        return len(by_node) > 1
    seen: set[Key] = set()
    for keys in (keys for keys in by_node if keys is not None):
        if not seen.isdisjoint(keys):
            return True
        seen.update(keys)
    return False
