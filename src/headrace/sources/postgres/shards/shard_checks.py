"""Checks all servers of a source with shards, each by itself and then together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.errors import HeadraceError
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.health.server_health import check
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.shards.shard_agreement import agreement, seen
from headrace.sources.postgres.shards.shard_options import node_options
from headrace.sources.source_kind import Check, Json


def check_shards(options: Json) -> tuple[Check, ...]:
    """Check each server, then whether they agree; one out of reach is a failed check.

    Args:
        options: Of a source with shards, as it would be created.
    """
    found = [c for name in options[NODES] for c in _of_one(node_options(options, name), name)]
    if all(c.ok for c in found):
        found += agreement(options, seen(options, options["tables"], {}), options["tables"])
    return tuple(found)


def _of_one(options: Json, name: str) -> Iterator[Check]:
    tables = {mirror: (of[0], of[1]) for mirror, of in options["tables"].items()}
    parts = {tables[m]: Part(tuple(p["columns"]), p["where"]) for m, p in options.get("parts", {}).items()}
    try:
        of_server = check(options["url"], tuple(tables.values()), options["as_text"], parts, options["capture"])
    except HeadraceError as error:
        yield Check(f"{name}: server", False, f"[{error.code}] {error.message}", error.hint)
        return
    for one in of_server:
        yield replace(one, name=f"{name}: {one.name}")
