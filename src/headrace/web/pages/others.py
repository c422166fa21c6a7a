"""Sources and sinks, deployments, events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.catalog import SourceStatus
from headrace.observability.event_words import logged_words
from headrace.web.pages.page import Given, Page, number
from headrace.web.site import Site, remedy

MOST_EVENTS = 500
BAD = frozenset({"refresh_failed", "suspended", "fuse_blown", "sink_failed", "promotion_refused", "watch_failed"})
WARNING = frozenset({"lag_exceeded", "slot_running_out", "retry_planned", "paused", "waiting", "rolled_back"})


def sources(site: Site, given: Given) -> Page:
    """Show database sources and sinks, with what their servers keep and what went wrong."""
    state = site.state()
    with site.project._catalog.reading() as reader:
        failures = {source.name: source.failure for source in reader.sources()}
    rows = []
    for source in state.sources:
        figures: Mapping[str, Any] | None = state.figures.get(source.name, {})
        failure = failures.get(source.name)
        bad = source.status is SourceStatus.STOPPED or (failure is not None and failure.over is None)
        kind = "bad" if bad else "held" if source.status is SourceStatus.PAUSED else "good"
        rows.append({"source": source, "figures": figures, "failure": failure, "kind": kind})
    sinks = [
        {
            "sink": sink,
            "kind": "bad" if sink.stopped_reason or sink.failures else "late" if sink.behind_seconds > 60 else "good",
            "remedy": sink.remedy,
        }
        for sink in state.sinks
    ]
    return Page("sources.html", {"rows": rows, "sinks": sinks})


def deployments(site: Site, given: Given) -> Page:
    """Show second generations: what differs, how far they are, what stands against a promotion."""
    found: dict[str, list[Any]] = {}
    for green in site.project.green_status():
        found.setdefault(green.deployment, []).append(green)
    return Page("deployments.html", {"deployments": found})


def events(site: Site, given: Given) -> Page:
    """Show what happened, newest first, filtered."""
    wanted, kind = given.get("q", "").strip().lower(), given.get("kind", "")
    limit = number(given, "limit", 100, MOST_EVENTS)
    catalog = site.project._catalog
    records = catalog.events(None, MOST_EVENTS * 4, (kind,) if kind else ())
    rows = []
    for record in reversed(records):
        words = logged_words(record.kind, record.fields)
        if wanted in words.lower() or wanted in record.kind:
            code = record.fields.get("code")
            level = "bad" if record.kind in BAD else "late" if record.kind in WARNING else "good"
            helps = remedy(str(code)) if code else None
            rows.append({"record": record, "words": words, "level": level, "remedy": helps})
        if len(rows) == limit:
            break
    kinds = sorted({record.kind for record in catalog.events(None, MOST_EVENTS * 4)} | ({kind} if kind else set()))
    return Page("events.html", {"rows": rows, "q": wanted, "kind": kind, "kinds": kinds, "limit": limit})
