"""Makes one capture of the captures of all shards."""

from __future__ import annotations

import threading
from collections.abc import Collection
from functools import cache, partial

from headrace.names import TableName
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.nodes.nodes_capture import AT_ONCE, NODES_DIFFER, NodesCapture, NodeSet
from headrace.sources.postgres.health.stop_reasons import RESNAPSHOT
from headrace.sources.postgres.option_names import AVAILABILITY, SAME_KEY, SHARD_COLUMN
from headrace.sources.postgres.setup.open_capture import open_capture
from headrace.sources.postgres.shards.shard_agreement import (
    Kept,
    kept_tables,
    require_agreement,
    shapes_on,
    tables_again,
)
from headrace.sources.postgres.shards.shard_options import node_options
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.source_kind import Json, KeptMirror, KeptSource


def open_shards(
    source: KeptSource,
    folder: str,
    told: Told,
    landings: int,
    stopping: Collection[str],
) -> NodesCapture:
    """Return the capture of a source with shards.

    Args:
        source: The source.
        folder: Where landings of the source have their folders; each shard has one in it.
        told: Told how far a snapshot is.
        landings: How many this process has published.
        stopping: Codes of errors after which a shard must be copied anew.
    """
    options = source.options
    mirrors = {mirror.name: _details(mirror) for mirror in source.mirrors}
    all_gone = {mirror.name for mirror in source.mirrors if mirror.gone}
    position = (source.position or {}).get(NODES, {})

    def of_shard(stage: str, name: str) -> None:
        told(f"{stage} ({name})")

    def details_on(name: str) -> tuple[dict[TableName, Json | None], set[TableName]]:
        """Return the details of a shard's tables, and the mirrors whose tables are gone there."""
        own: dict[TableName, Json | None] = {m: (of or {}).get(NODES, {}).get(name) for m, of in mirrors.items()}
        gone = {
            m for m, of in mirrors.items() if of is not None and own[m] is None and (m in all_gone or name in of[NODES])
        }
        return own, gone

    @cache  # and not for every landing: few need it, and all tables of all shards are parsed
    def kept(name: str) -> Kept:
        return kept_tables(*details_on(name), position.get(name))

    def require(compared: Collection[TableName], begins: Collection[str]) -> None:
        require_agreement(options, {name: kept(name) for name in options[NODES]}, compared, begins)

    def remedy(name: str, hint: str) -> str:
        alone = f"{RESNAPSHOT.removesuffix('`')} {source.name} --shard {name}`"
        return hint.replace(RESNAPSHOT, alone)

    captures, ended = {}, threading.Event()
    for name in options[NODES]:
        own, gone = details_on(name)
        captures[name] = open_capture(
            node_options(options, name),
            own,
            f"{folder}/{name}",
            gone=gone,
            position=position.get(name),
            told=partial(of_shard, name=name),
            landings=landings,
            ended=ended,
            most=max(MOST // min(len(options[NODES]), AT_ONCE), 1),
        )
    return NodesCapture(
        NodeSet(
            captures,
            mirrors,
            frozenset(stopping),
            column=options[SHARD_COLUMN],
            unique=options[SAME_KEY] == "error",
            strict=options[AVAILABILITY] == "strict",
            word="Shard",
            ended=ended,
            differing=[name for name, code in source.held.items() if code == NODES_DIFFER],
            look=lambda name: shapes_on(options, kept(name), mirrors, name),
            require=require,
            tables_again=partial(tables_again, options),
            remedy=remedy,
        )
    )


def _details(mirror: KeptMirror) -> Json | None:
    """Return the details of a mirror; of one whose table is gone, no shard has any."""
    if not mirror.gone or mirror.details is None:
        return mirror.details
    return {**mirror.details, NODES: dict.fromkeys(mirror.details.get(NODES, {}))}
