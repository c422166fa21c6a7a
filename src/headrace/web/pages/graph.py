"""The graph: who reads whom, in which state, as a picture; large ones around one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from headrace import units
from headrace.graph.dag import Dag
from headrace.observability.metrics.project_state import ProjectState
from headrace.results.refresh_results import StreamTableInfo
from headrace.web.drawing.graph_layout import Layout, layout
from headrace.web.drawing.graph_svg import GraphNode, graph_svg
from headrace.web.pages.lineage import columns_read
from headrace.web.pages.page import Given, Page, number
from headrace.web.rendering import table_url
from headrace.web.site import Site, condition

WHOLE = 100
"""From so many names on, the page opens at a neighbourhood."""

MOST_DRAWN = 300
FARTHEST = 6

Edges = tuple[tuple[str, tuple[str, ...]], ...]


def graph(site: Site, given: Given) -> Page:
    """Show the graph, or what is near a table."""
    state = site.state()
    whole = site.graph(state)
    tables = {table.name: table for table in state.tables}
    focus, wanted = given.get("focus", ""), given.get("q", "").strip()
    matches = [name for name in whole.names if wanted and wanted.lower() in name.lower()]
    if not focus and len(matches) == 1:
        focus = matches[0]
    if not focus and len(whole) >= WHOLE and matches:
        focus = matches[0]
    if not focus and len(whole) >= WHOLE:
        focus = _most_interesting(whole, tables)
    depth = number(given, "depth", 2, FARTHEST)
    focus = focus if focus in whole else ""
    names = neighbourhood(whole, focus, depth) if focus else list(whole.names)
    drawn = names[:MOST_DRAWN]
    columns = columns_read(site, set(drawn))
    return Page(
        "graph.html",
        {
            "svg": _picture(site, state, whole, tables, drawn, focus, columns) if drawn else None,
            "columns": sorted((consumer, producer, words) for (producer, consumer), words in columns.items()),
            "drawn": len(drawn),
            "left_out": len(names) - len(drawn),
            "total": len(whole),
            "focus": focus,
            "depth": depth,
            "farthest": FARTHEST,
            "q": wanted,
            "matches": matches[:50],
            "names": whole.names if len(whole) <= 2000 else (),
        },
    )


def neighbourhood(graph: Dag[str], focus: str, depth: int) -> list[str]:
    """Return the names at most so far from one, nearest first."""
    found = {focus: 0}
    for name in (queue := [focus]):
        if found[name] < depth:
            for beside in (*graph.producers(name), *graph.consumers(name)):
                if beside not in found:
                    found[beside] = found[name] + 1
                    queue.append(beside)
    return list(found)


def _most_interesting(graph: Dag[str], tables: Mapping[str, StreamTableInfo]) -> str:
    """Return a table that is not well, else one with many neighbours."""
    unwell = [name for name, table in tables.items() if condition(table)[0] in ("bad", "late")]
    candidates: Iterable[str] = unwell or graph.names
    return max(candidates, key=lambda name: (len(graph.producers(name)) + len(graph.consumers(name)), name), default="")


def _picture(
    site: Site,
    state: ProjectState,
    whole: Dag[str],
    tables: Mapping[str, StreamTableInfo],
    names: list[str],
    focus: str,
    columns: Mapping[tuple[str, str], str],
) -> str:
    inside = set(names)
    edges = tuple((name, tuple(p for p in whole.producers(name) if p in inside)) for name in sorted(inside))
    groups: dict[str, tuple[str, ...]] = {}
    for table in state.tables:
        if table.group is not None and table.name in inside:
            groups[table.group] = (*groups.get(table.group, ()), table.name)
    mirrors = {mirror: source.name for source in state.sources for mirror in source.mirrors}
    running = {each.table for each in site.running(state)}
    nodes = {name: _node(name, tables.get(name), mirrors.get(name), name == focus, name in running) for name in inside}
    return graph_svg(_places(edges), nodes, columns, groups)


@lru_cache(maxsize=64)
def _places(edges: Edges) -> Layout[str]:
    """Return the layout; computed once as long as definitions stay the same."""
    return layout(Dag(dict(edges)))


def _node(name: str, table: StreamTableInfo | None, source: str | None, focus: bool, running: bool) -> GraphNode:
    if table is None:
        line = f"mirror of source {source}" if source else "source table"
        return GraphNode(name, "source", line, "/sources" if source else None, f"{name}: {line}", focus)
    kind, word = condition(table)
    lag = "" if table.lag is None else f"lag {units.span(table.lag)}"
    line = " · ".join(filter(None, ("refreshing" if running else word, lag, table.last_mode and str(table.last_mode))))
    hint = f"{name}: {word}" + (f", {lag}" if lag else "") + (f", {table.held_up}" if table.held_up else "")
    return GraphNode(name, "running" if running else kind, line, table_url(name), hint, focus)
