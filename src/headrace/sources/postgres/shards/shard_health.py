"""Health of a source with shards: each server's, and what of it concerns the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.errors import HeadraceError
from headrace.sources.interruption import side_by_side
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.nodes.nodes_capture import AT_ONCE
from headrace.sources.postgres.health.node_looks import looks_on, outlook_of_nodes
from headrace.sources.postgres.health.server_health import look
from headrace.sources.postgres.health.source_status import outlook_of, status
from headrace.sources.postgres.option_names import AVAILABILITY, SAME_KEY, SHARD_COLUMN
from headrace.sources.postgres.shards.shard_options import node_options
from headrace.sources.postgres.table_names import followed
from headrace.sources.source_kind import (
    OUT_OF_REACH,
    HealthLine,
    Json,
    KeptMirror,
    KeptSource,
    Outlook,
    ServerHealth,
)


@dataclass(frozen=True, slots=True)
class ShardSource:
    """One shard, as a source of that server alone; see `KeptSource`."""

    name: str
    options: Json
    position: Json | None
    mirrors: tuple[KeptMirror, ...] = ()
    looks: tuple[Json, ...] = field(default=())
    held: Mapping[str, str] = field(default_factory=dict)


def each_shard(source: KeptSource) -> dict[str, ShardSource]:
    """Return the shards of a source."""
    at = (source.position or {}).get(NODES, {})
    looks = {name: looks_on(source.looks, name) for name in source.options[NODES]}
    return {
        name: ShardSource(source.name, node_options(source.options, name), at.get(name), looks=looks[name])
        for name in source.options[NODES]
    }


def status_of_shards(source: KeptSource, folder: str) -> ServerHealth:
    """Ask all servers of a source; one that does not answer is listed as out of reach.

    Args:
        source: The source.
        folder: Where its landings have their folders.

    Raises:
        EnvironmentFault: That of the first shard, where none answers.
    """
    shards = each_shard(source)

    def one(name: str) -> ServerHealth | HeadraceError:
        try:
            return status(shards[name], f"{folder}/{name}")
        except HeadraceError as error:
            return error

    found = side_by_side(one, shards, AT_ONCE)
    answers = {name: of for name, of in found.items() if not isinstance(of, HeadraceError)}
    if not answers:
        raise next(of for of in found.values() if isinstance(of, HeadraceError))
    looks = {name: of.look for name, of in answers.items() if of.look is not None}
    return ServerHealth(
        _figures(source, found, {name: of.figures for name, of in answers.items()}),
        tuple(_lines(source, found)),
        {NODES: looks} if looks else None,
    )


_ADDED = ("lag_bytes", "lag_transactions", "waiting_rows", "kept_bytes", "spool_bytes", "spilled_bytes")
_SOONEST = ("safe_bytes", "runs_out_seconds")


def _figures(source: KeptSource, found: Mapping[str, object], answers: Mapping[str, Json]) -> dict[str, Any]:
    """Return figures of the whole, and those of each shard."""

    def known(name: str) -> list[Any]:
        return [of[name] for of in answers.values() if of.get(name) is not None]

    ways = {of["capture"] for of in source.options[NODES].values()}
    failures = getattr(source, "node_failures", {})
    figures: dict[str, Any] = {
        "capture": ways.pop() if len(ways) == 1 else "mixed",
        "lag_seconds": max(known("lag_seconds"), default=None),
        "lag_seconds_at_most": any(known("lag_seconds_at_most")),
        "lag_transactions_at_least": any(known("lag_transactions_at_least")),
        "operation": int((source.position or {}).get("op", 0)),
        AVAILABILITY: source.options[AVAILABILITY],
        SAME_KEY: source.options[SAME_KEY],
        SHARD_COLUMN: source.options[SHARD_COLUMN],
        "shards": {},
    }
    figures |= {name: sum(known(name)) if known(name) else None for name in _ADDED}
    figures |= {name: min(known(name), default=None) for name in _SOONEST}
    for name, of in found.items():
        error = of if isinstance(of, HeadraceError) else failures.get(name)
        over = getattr(error, "over", None) is not None
        told = None if error is None or over else f"[{error.code}] {error.message}"
        figures["shards"][name] = {
            "url": source.options[NODES][name]["url"],
            "reached": name in answers,
            "error": told,
            **dict(answers.get(name, {})),
        }
    return figures


def _lines(source: KeptSource, found: Mapping[str, ServerHealth | HeadraceError]) -> Iterator[HealthLine]:
    yield HealthLine("Operation", f"{int((source.position or {}).get('op', 0)):,}")
    failures = getattr(source, "node_failures", {})
    for name, of in found.items():
        yield HealthLine(f"Shard {name}", source.options[NODES][name]["url"])
        failure = failures.get(name)
        if isinstance(of, HeadraceError):
            yield HealthLine("Held back", f"[{of.code}] {of.message}")
            continue
        if failure is not None and failure.over is None:
            yield HealthLine("Held back", f"[{failure.code}] {failure.message}")
            if failure.remedy:
                yield HealthLine("Remedy", failure.remedy)
        yield from of.lines


def look_at_shards(source: KeptSource, *, landed: bool) -> Json | None:
    """Look at the slots of all shards that can be reached; None where there is none to lose.

    Args:
        source: The source.
        landed: It was just landed: a shard that was out of reach for that is not waited for once more.
    """
    away = {name for name, code in source.held.items() if landed and code in OUT_OF_REACH}
    shards = {name: shard for name, shard in each_shard(source).items() if name not in away}

    def one(name: str) -> Json | None:
        with suppress(HeadraceError):
            return look(shards[name].options, shards[name].position, keep_from_idling=landed)
        return None

    found = {name: now for name, now in side_by_side(one, shards, AT_ONCE).items() if now is not None}
    return {NODES: found} if found else None


def outlook_of_shards(source: KeptSource, now: Json) -> Outlook:
    """Compare a new look at all shards with remembered ones; return the loss that comes first."""
    judges = ((name, partial(_judged, shard)) for name, shard in each_shard(source).items())
    return outlook_of_nodes(source.looks, now, judges, "shard {}".format)


def _judged(shard: ShardSource, _: tuple[Json, ...], now: Json) -> Outlook:
    return outlook_of(shard, now)


def followed_by_shard(source: KeptSource) -> dict[str, str]:
    """Return the tables' present names by mirror, for those that were renamed on a shard."""
    found: dict[str, str] = {}
    for name, shard in each_shard(source).items():
        oids = {m.name: int(own["oid"]) for m in source.mirrors if not m.gone and (own := _own(m, name)) is not None}
        declared = {n: ".".join(source.options["tables"][n.table]) for n in oids}
        for mirror, now in followed(shard.position, oids, declared):
            found[str(mirror)] = f"{found[str(mirror)]}, {now} ({name})" if str(mirror) in found else f"{now} ({name})"
    return found


def _own(mirror: KeptMirror, shard: str) -> Json | None:
    return ((mirror.details or {}).get(NODES) or {}).get(shard)
