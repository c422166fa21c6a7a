"""Runs: refreshes that belong together in time, as a Gantt chart with the critical path."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from headrace import units
from headrace.catalog import HistoryEntry, Outcome
from headrace.graph.dag import Dag
from headrace.results.refresh_results import Mode
from headrace.web.drawing.gantt import Stretch, gantt
from headrace.web.pages.page import Given, Page, not_found
from headrace.web.rendering import table_url
from headrace.web.site import Site

PAUSE = dt.timedelta(seconds=2)
"""A run ends when nothing is refreshed for so long."""

MOST_ENTRIES, MOST_RUNS, MOST_ROWS = 2000, 40, 150

Run = list[HistoryEntry]


def runs(site: Site, given: Given) -> Page:
    """List the last runs; show one, the last if none is asked for."""
    state = site.state()
    found = runs_of(site.project._catalog.history(None, MOST_ENTRIES))[:MOST_RUNS]
    wanted = given.get("run", "")
    chosen = next((run for run in found if str(run[0].id) == wanted), None)
    if wanted and chosen is None:
        return not_found("That run is not among the last ones.")
    chosen = chosen or (found[0] if found else None)
    graph = site.graph(state)
    return Page(
        "runs.html",
        {
            "runs": [_summary(run) for run in found],
            "chosen": _summary(chosen) if chosen else None,
            "picture": _picture(chosen, graph) if chosen else None,
            "path": [str(entry.stream) for entry in critical(chosen, graph)] if chosen else [],
            "left_out": max(0, len(chosen) - MOST_ROWS) if chosen else 0,
        },
    )


def runs_of(entries: Sequence[HistoryEntry]) -> list[Run]:
    """Return runs, the last one first; refreshes that found nothing are part of none."""
    found: list[Run] = []
    until = None
    for entry in sorted(entries, key=lambda entry: entry.started_at):
        if entry.mode is Mode.NO_CHANGE and entry.outcome is Outcome.OK:
            continue
        if until is None or entry.started_at > until + PAUSE:
            found.append([])
            until = entry.finished_at
        found[-1].append(entry)
        until = max(until, entry.finished_at)
    return found[::-1]


def critical(run: Run, graph: Dag[str]) -> list[HistoryEntry]:
    """Return the refreshes that decided how long a run took, from the first to the last.

    From the one that ended last it goes back to what it waited for: of the tables that it reads, directly or through
    others, the one whose refresh ended last before it began.
    """
    if not run:
        return []
    path = [max(run, key=lambda entry: entry.finished_at)]
    while True:
        first = path[0]
        above = set(graph.upstream(str(first.stream)))
        before = [e for e in run if str(e.stream) in above and e.finished_at <= first.finished_at and e not in path]
        if not before:
            return path
        path.insert(0, max(before, key=lambda entry: entry.finished_at))


def _summary(run: Run) -> dict[str, object]:
    begin, end = run[0].started_at, max(entry.finished_at for entry in run)
    return {
        "id": run[0].id,
        "at": begin,
        "seconds": (end - begin).total_seconds(),
        "work": sum(entry.seconds for entry in run),
        "count": len(run),
        "failed": sum(entry.outcome is Outcome.FAILED for entry in run),
    }


def _picture(run: Run, graph: Dag[str]) -> str:
    begin = run[0].started_at
    deciding = {id(entry) for entry in critical(run, graph)}
    rows = [_row(entry, begin, id(entry) in deciding) for entry in run[:MOST_ROWS]]
    return gantt(rows, max(row.end for row in rows))


def _row(entry: HistoryEntry, begin: dt.datetime, deciding: bool) -> Stretch:
    failed = entry.outcome is Outcome.FAILED
    word = "failed" if failed else entry.mode.value
    stages = ", ".join(f"{name} {units.seconds(took)}" for name, took in entry.stages.items())
    hint = f"{entry.stream}: {word}, {units.seconds(entry.seconds)}" + (f" ({stages})" if stages else "")
    return Stretch(
        name=str(entry.stream),
        begin=(entry.started_at - begin).total_seconds(),
        end=(entry.finished_at - begin).total_seconds(),
        kind="failed" if failed else entry.mode.value.lower(),
        hint=hint + (", on the critical path" if deciding else ""),
        href=table_url(entry.stream),
        stages=tuple((name, float(took)) for name, took in entry.stages.items()),
        critical=deciding,
    )
