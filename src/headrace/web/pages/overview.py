"""The overview: health, lag against target, what runs, what failed and what helps."""

from __future__ import annotations

import math
from collections import Counter

from headrace.results.refresh_results import StreamTableInfo
from headrace.web.pages.page import Given, Page, number
from headrace.web.site import Site, condition, remedy

PER_PAGE = 100
MOST_TROUBLES = 30
ORDER = ("bad", "late", "held", "new", "good")
"""Conditions of tables, in the order in which they are shown."""


def overview(site: Site, given: Given) -> Page:
    """Show where everything stands."""
    state = site.state()
    wanted, only = given.get("q", "").strip(), given.get("state", "")
    shown = [(table, *condition(table)) for table in state.tables]
    counts = Counter(kind for _, kind, _ in shown)
    found = [row for row in shown if wanted.lower() in row[0].name.lower() and only in ("", row[1])]
    found.sort(key=lambda row: (ORDER.index(row[1]), row[0].name))
    pages = max(1, math.ceil(len(found) / PER_PAGE))
    page = number(given, "page", 1, pages)
    troubled = [row for row in shown if row[1] == "bad"]
    return Page(
        "overview.html",
        {
            "state": state,
            "counts": counts,
            "late": [table for table, kind, _ in shown if kind == "late"],
            "troubles": [_trouble(site, table) for table, _, _ in troubled[:MOST_TROUBLES]],
            "more_troubles": max(0, len(troubled) - MOST_TROUBLES),
            "rows": found[(page - 1) * PER_PAGE : page * PER_PAGE],
            "found": len(found),
            "page": page,
            "list_pages": pages,
            "q": wanted,
            "only": only,
            "running": site.running(state),
        },
    )


def _trouble(site: Site, table: StreamTableInfo) -> dict[str, str | None]:
    """Return what is wrong with a table, and what to do about it."""
    if table.damage is not None:
        return _said(table, table.damage, f"`headrace repair {table.name}` brings it back as it was published.")
    if table.fuse is not None:
        return _said(table, table.fuse, f"Decide: `headrace fuse {table.name}` with apply, skip or reinitialize.")
    if table.stopped_reason is not None:
        return _said(table, table.stopped_reason, None)
    last = site.project.history(table.name, 1)
    code = last[0].error_code if last else None
    message = f"[{code}] {table.last_error}" if code else table.last_error
    return _said(table, message or "It failed.", remedy(code))


def _said(table: StreamTableInfo, message: str, helps: str | None) -> dict[str, str | None]:
    return {"name": table.name, "message": message, "remedy": helps, "held_up": table.held_up}
