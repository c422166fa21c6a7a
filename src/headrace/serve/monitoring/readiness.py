"""Tells whether tables are ready, in which order, and what there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.graph.dag import Dag
from headrace.observability.metrics.project_state import ProjectState
from headrace.refresh.held_leases import is_own
from headrace.results.refresh_results import Status, StreamTableInfo

Document = dict[str, Any]


def readiness(state: ProjectState, graph: Dag[str], owner: bool, wanted: Sequence[str] = ()) -> tuple[bool, Document]:
    """Return whether it is ready, and the document that says why.

    Args:
        state: The project.
        graph: Who reads whom, by name.
        owner: Whether this process runs schedules, and is ready only while it does.
        wanted: Stream tables that, with all they read, have to be well and within their target lag; none: it is enough
            that the catalog answers and that schedules are run here.
    """
    if state.error is not None:
        checks = [_check("catalog", False, f"[{state.error.code}] {state.error.message}")]
        return False, {"ready": False, "checks": checks}
    checks = [_check("catalog", True, f"answers in {1000 * (state.latency or 0):.1f} ms")]
    if owner:
        checks.append(_of_scheduler(state))
    tables = {table.name: table for table in state.tables}
    entries = {name: _entry(tables[name], graph, tables) for name in graph.order(set(tables)) if name in tables}
    entries |= {name: _entry(tables[name], graph, tables) for name in tables if name not in entries}
    _wait_for_inputs(entries, graph)
    for name in wanted:
        entry = entries.get(name)
        checks.append(_check(name, bool(entry and entry["ready"]), entry["why"] if entry else "no such stream table"))
    ready = all(check["ok"] for check in checks)
    shown = [entry for name, entry in entries.items() if not wanted or name in wanted]
    return ready, {"ready": ready, "checks": checks, "pool": _pool(state), "tables": shown}


def _entry(table: StreamTableInfo, graph: Dag[str], tables: Mapping[str, StreamTableInfo]) -> Document:
    why = next(_troubles(table), None)
    return {
        "name": table.name,
        "ready": why is None,
        "why": why,
        "after": [name for name in graph.producers(table.name) if name in tables],
        "reads": list(graph.producers(table.name)),
        "group": table.group,
        "pool": table.pool,
        "lag": table.lag,
        "target": table.target,
        "up_to_date": table.lag == 0,
        "last_refresh": table.last_refresh.isoformat() if table.last_refresh else None,
    }


def _troubles(table: StreamTableInfo) -> Iterator[str]:
    """Yield what keeps a table from being ready, by itself."""
    if table.status is Status.NEW:
        yield "not loaded yet"
    elif table.status is not Status.ACTIVE:
        yield table.damage or table.stopped_reason or table.status.value.lower()
    if table.held_up is not None:
        yield table.held_up
    if table.last_error is not None:
        yield f"its last refresh failed: {table.last_error}"
    if table.is_late:
        yield f"{table.lag:.0f} s behind, target {table.target} s"


def _wait_for_inputs(entries: Mapping[str, Document], graph: Dag[str]) -> None:
    """Let tables that read one that is not ready be so, too; producers come first."""
    for name, entry in entries.items():
        above = next((n for n in graph.upstream(name) if n in entries and n != name and not entries[n]["ready"]), None)
        if entry["ready"] and above is not None:
            entry.update(ready=False, why=f"{above} is not ready: {entries[above]['why']}")


def _of_scheduler(state: ProjectState) -> Document:
    drains = [draining for owner, draining in state.schedulers.items() if is_own(owner)]
    if not drains:
        return _check("scheduler", False, "this process runs no schedules")
    if all(drains):
        return _check("scheduler", False, "draining: nothing more is started")
    return _check("scheduler", True, f"{len(state.schedulers)} running")


def _pool(state: ProjectState) -> Document:
    load = state.load
    found: Document = {"running": list(state.running)}
    if load is not None:
        pools = {name: {"slots": of, "used": load.pools.get(name, 0)} for name, of in load.quotas.items()}
        found |= {"slots": load.slots, "used": load.running, "queued": load.queued, "pools": pools}
    return found


def _check(name: str, ok: bool, detail: str | None) -> Document:
    return {"name": name, "ok": ok, "detail": detail}
