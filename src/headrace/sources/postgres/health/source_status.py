"""Reads a source's status at its server, for programs and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

from headrace import units
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.health import slot_outlook
from headrace.sources.postgres.health.node_health import Health, NodeHealth
from headrace.sources.postgres.health.node_looks import looks_on, outlook_of_nodes
from headrace.sources.postgres.health.server_health import health
from headrace.sources.postgres.health.slot_outlook import as_json, from_json, remembered
from headrace.sources.postgres.setup.open_capture import way_of
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.source_kind import HealthLine, ImpendingLoss, Json, KeptSource, Outlook, ServerHealth


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a source's status for programs.

    Args:
        capture: `wal`, `trigger` or `auto`.
        lag_seconds: How long ago the oldest transaction that waits to be landed was committed; 0 when none waits, None
            where that is not known.
        lag_seconds_at_most: That is how long at most: under triggers, unless the server has `track_commit_timestamp`.
        lag_bytes: Write-ahead log written since what is landed; None under triggers.
        lag_transactions: Transactions with changes of captured tables that wait; None where they cannot be counted.
        lag_transactions_at_least: There are that many at least: counting was ended.
        waiting_rows: Captured rows that are not landed, of each table 100,000 at most; None where the write-ahead log
            is read.
        slot: The replication slot and the publication; under triggers, the schema of the change tables.
        slot_status: `reserved`, `extended`, `unreserved` or `lost`; None when there is no slot.
        slot_invalidation: Why the server has invalidated the slot, where it says so (17 and newer).
        slot_active_by: Who reads the slot now, in words; None when nobody does.
        kept_bytes: Write-ahead log that the server keeps for the slot, or change tables; None where they are missing.
        safe_bytes: How much more until the slot may be lost; None without a limit.
        log_bytes_per_second: How fast the server writes its log, from earlier looks; None where there is none yet.
        runs_out_seconds: How long the slot lasts if nothing more is landed: until there is no room for the log at that
            rate, or it counts as idle; None without a limit, or where that is not known.
        idle_timeout_seconds: `idle_replication_slot_timeout` (18); None where there is none.
        idle_seconds: How long ago the slot was last read (17); None while it is, and where that is not known.
        spilled_bytes: What decoding large transactions has put on the server's disk since its statistics began; None
            where there is no slot.
        spool_bytes: Rows in the warehouse that are on their way into the mirrors.
        operation: The last operation id of a row in a mirror's change log; 0 before the first one.
        nodes: The nodes of a Citus cluster with their slots; what is said of a slot above is said of the one that is
            nearest to being lost, or keeps most log. Left out for a single server.
    """

    capture: str
    lag_seconds: float | None
    lag_seconds_at_most: bool
    lag_bytes: int | None
    lag_transactions: int | None
    lag_transactions_at_least: bool
    waiting_rows: int | None
    slot: str
    slot_status: str | None
    slot_invalidation: str | None
    slot_active_by: str | None
    kept_bytes: int | None
    safe_bytes: int | None
    log_bytes_per_second: float | None
    runs_out_seconds: float | None
    idle_timeout_seconds: float | None
    idle_seconds: float | None
    spilled_bytes: int | None
    spool_bytes: int
    operation: int
    nodes: tuple[NodeHealth, ...] = ()


def status(source: KeptSource, folder: str) -> ServerHealth:
    """Ask the server of a source.

    Args:
        source: The source.
        folder: Where its landings have their folders.

    Raises:
        EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
    """
    found = health(source.options, source.position)
    figures = _figures(source, found, Spool(folder).size())
    shown = asdict(figures)
    if not figures.nodes:
        del shown["nodes"]
    return ServerHealth(shown, tuple(_lines(figures)), found.remembered)


def outlook_of(source: KeptSource, look: Json) -> Outlook:
    """Compare a new look at a slot, or those of all nodes of a cluster, with remembered ones."""
    judge = partial(_judged, source.options["slot"])
    if NODES in look:
        return outlook_of_nodes(source.looks, look, ((node, judge) for node in look[NODES]), "node {}".format)
    return judge(looks_on(source.looks, None), look)


def _judged(slot: str, before: tuple[Json, ...], look: Json) -> Outlook:
    looks, (now,) = from_json(before), from_json((look,))
    found = slot_outlook.outlook(looks, now)
    kept = tuple(as_json(remembered(looks, now)))
    if found.why is None:
        return Outlook(kept)
    return Outlook(kept, ImpendingLoss(slot, now.left, found.seconds, found.why))


def _figures(source: KeptSource, found: Health, spooled: int) -> Figures:
    before = from_json(looks_on(source.looks, found.node))
    ahead = slot_outlook.outlook(before, found.look) if found.look else None
    waits, slot, use = found.backlog, found.slot, found.use
    return Figures(
        capture=way_of(source.options),
        lag_seconds=waits.seconds if waits else None,
        lag_seconds_at_most=waits is not None and waits.at_most,
        lag_bytes=found.lag,
        lag_transactions=waits.transactions if waits else None,
        lag_transactions_at_least=waits is not None and waits.more,
        waiting_rows=found.waiting,
        slot=source.options["slot"],
        slot_status=slot.status if slot else None,
        slot_invalidation=slot.reason if slot else None,
        slot_active_by=use.by if use else None,
        kept_bytes=slot.kept if slot else found.kept,
        safe_bytes=slot.safe if slot else None,
        log_bytes_per_second=ahead.rate if ahead else None,
        runs_out_seconds=ahead.seconds if ahead else None,
        idle_timeout_seconds=use.patience if use else None,
        idle_seconds=use.idle if use else None,
        spilled_bytes=use.spilled if use else None,
        spool_bytes=spooled,
        operation=int((source.position or {}).get("op", 0)),
        nodes=found.nodes,
    )


def _lines(of: Figures) -> Iterator[HealthLine]:
    yield HealthLine("Behind", _behind(of))
    if of.waiting_rows is not None:
        yield HealthLine("Triggers", f"schema {of.slot}")
        kept, wait = of.kept_bytes, f", {units.count(of.waiting_rows)} rows wait"
        yield HealthLine("Change tables", wait if kept is None else units.size(kept) + wait, missing=kept is None)
    else:
        yield from _slot(of)
    for node in of.nodes:
        lag = "" if node.lag_bytes is None else f", {units.size(node.lag_bytes)} of write-ahead log behind"
        text = f"{node.slot_status}{lag}" if node.slot_status else ""
        yield HealthLine(f"Node {node.node}", text, missing=node.slot_status is None)
    yield HealthLine("On the way", f"{units.size(of.spool_bytes)} in the warehouse")
    if of.operation:
        yield HealthLine("Operation", f"{of.operation:,}")


def _behind(of: Figures) -> str:
    """Return `12.5 s, 3 transactions, 4.0 MiB of write-ahead log`."""
    parts = []
    if of.lag_seconds is not None:
        parts.append(("at most " if of.lag_seconds_at_most else "") + units.seconds(of.lag_seconds))
    if of.lag_transactions is not None:
        least = "at least " if of.lag_transactions_at_least else ""
        parts.append(f"{least}{units.count(of.lag_transactions)} transactions")
    if of.lag_bytes is not None:
        parts.append(f"{units.size(of.lag_bytes)} of write-ahead log")
    return ", ".join(parts) or units.NOTHING


def _slot(of: Figures) -> Iterator[HealthLine]:
    yield HealthLine("Slot", of.slot)
    if of.slot_status is None:
        yield HealthLine("State", missing=True)
        return
    why = f" ({of.slot_invalidation})" if of.slot_invalidation else ""
    yield HealthLine("State", of.slot_status + why)
    yield HealthLine("Read by", of.slot_active_by or "nobody now")
    left = "no limit" if of.safe_bytes is None else f"{units.size(max(0, of.safe_bytes))} left"
    yield HealthLine("Kept log", f"{units.size(of.kept_bytes or 0)}, {left}")
    if of.runs_out_seconds is not None:
        yield HealthLine("Lost in", f"{units.span(of.runs_out_seconds)}, if nothing more is landed")
    elif of.safe_bytes is not None and of.log_bytes_per_second is None:
        yield HealthLine("Lost in", "not known yet: look again in a moment")
    if of.idle_timeout_seconds is not None:
        idle = units.NOTHING if of.idle_seconds is None else units.span(of.idle_seconds)
        yield HealthLine("Idle", f"{idle} of {units.span(of.idle_timeout_seconds)}")
    yield HealthLine("Spilled", f"{units.size(of.spilled_bytes or 0)} on the server, by large transactions")
