"""The page of a stream table: state, history as charts, definition, reasons, keys."""

from __future__ import annotations

import datetime as dt

from headrace import units
from headrace.api.declared_keys import key_infos
from headrace.catalog import HistoryEntry, Outcome, StreamTable
from headrace.definitions.details import Details, from_json
from headrace.errors import HeadraceError
from headrace.observability.attainment import read_stretch
from headrace.results.refresh_results import Mode, StreamTableInfo
from headrace.web.drawing.charts import Bar, bar_chart
from headrace.web.pages.lineage import column_rows
from headrace.web.pages.page import Given, Page, not_found, number
from headrace.web.site import Site, condition, remedy

CHARTED, LISTED, MOST_LISTED = 80, 20, 500


def stream_table(site: Site, given: Given) -> Page:
    """Show a stream table."""
    state = site.state()
    table = next((each for each in state.tables if each.name == given["name"]), None)
    if table is None:
        return not_found(f"There is no stream table {given['name']}.")
    catalog = site.project._catalog
    stored = catalog.find_stream_table(site.project._name(table.name))
    if stored is None:
        return not_found(f"There is no stream table {table.name} any more.")
    limit, details = number(given, "limit", LISTED, MOST_LISTED), from_json(stored.details)
    entries = catalog.history(stored.name, max(CHARTED, limit))
    graph = site.graph(state)
    kind, word = condition(table)
    return Page(
        "stream_table.html",
        {
            "table": table,
            "kind": kind,
            "word": word,
            "stored": stored,
            "statement": _statement(site, table),
            "reads": [(read, any(each.name == read for each in state.tables)) for read in graph.producers(table.name)],
            "columns": column_rows(site, stored, details),
            "lineage_unknown": site.lineages.of(stored).unknown,
            "tables": {each.name for each in state.tables},
            "uses": details.sources,
            "keys": _keys(site, stored, details),
            "charts": _charts(site, stored, entries[:CHARTED]),
            "entries": entries[:limit],
            "more": min(MOST_LISTED, len(entries) * 4) if len(entries) >= limit else None,
            "running": next((each for each in site.running(state) if each.table == table.name), None),
            "remedy": remedy(entries[0].error_code) if entries and table.last_error else None,
            "gates": table.gated,
        },
    )


def _statement(site: Site, table: StreamTableInfo) -> str:
    try:
        return site.project.show_create(table.name)
    except HeadraceError as error:
        return f"-- {error.message}"


def _keys(site: Site, stored: StreamTable, details: Details) -> list[tuple[str, str, str]]:
    """Return keys with what they are of and how they are known."""
    own = [(str(stored.name), ", ".join(key), "follows from the query") for key in details.keys]
    declared = {(key.source, key.columns) for key in key_infos(site.project._catalog)}
    of_sources = [
        (str(source), ", ".join(key), "declared" if (str(source), tuple(key)) in declared else "known of the source")
        for source, keys in details.source_keys.items()
        for key in keys
    ]
    return own + of_sources


def _charts(site: Site, stored: StreamTable, entries: tuple[HistoryEntry, ...]) -> list[tuple[str, str, str]]:
    """Return charts with their titles and what there is to know to read them."""
    oldest_first = [entry for entry in reversed(entries) if entry.mode is not Mode.NO_CHANGE]
    return [
        (
            "Duration",
            bar_chart("Duration of refreshes", [_duration(entry) for entry in oldest_first], units.seconds),
            "By mode; a line across a bar is what had been estimated for that mode.",
        ),
        (
            "Changed rows",
            bar_chart("Changed rows", [_changed(entry) for entry in oldest_first], lambda v: units.count(round(v))),
            "Rows that appeared and disappeared.",
        ),
        (
            "Lag",
            bar_chart("Lag when a refresh was published", _lags(site, stored), units.seconds),
            "What each publication of the last day ended: how old the oldest change was that the table lacked.",
        ),
    ]


def _duration(entry: HistoryEntry) -> Bar:
    failed = entry.outcome is Outcome.FAILED
    kind = "failed" if failed else entry.mode.value.lower()
    estimate = entry.metrics.get("estimate")
    expected = float(estimate) if isinstance(estimate, (int, float)) and not failed else None
    hint = f"{_at(entry.started_at)}: {'failed' if failed else entry.mode.value} {units.seconds(entry.seconds)}"
    if expected is not None:
        hint += f", estimated {units.seconds(expected)}"
    return Bar(entry.seconds, kind, hint + (f"; {entry.reason_detail}" if entry.reason_detail else ""), expected)


def _changed(entry: HistoryEntry) -> Bar:
    words = units.signed(entry.rows_inserted, entry.rows_deleted)
    kind = "failed" if entry.outcome is Outcome.FAILED else entry.mode.value.lower()
    return Bar(entry.rows_inserted + entry.rows_deleted, kind, f"{_at(entry.started_at)}: {words}")


def _lags(site: Site, stored: StreamTable) -> list[Bar]:
    catalog = site.project._catalog
    with catalog.reading() as reader:
        streams = [table.name for table in reader.stream_tables()]
        peaks = read_stretch(reader, streams, dt.datetime.now(dt.UTC)).peaks(stored.name)
    return [Bar(lag, "lag", f"{_at(at)}: {units.seconds(lag)}") for at, lag in peaks[-CHARTED:]]


def _at(moment: dt.datetime) -> str:
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S}"
