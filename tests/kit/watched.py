"""A project with a history, made without Spark: a pipeline whose refreshes were published, one of which failed.

`s.a` is the base table; `s.b` and `s.c` read it, `s.d` both of them, `s.e` it alone and fails; `s.<script>` has a name
that must be escaped wherever it is shown.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from catalog_kit.ready import ready_project
from catalog_kit.samples import lake

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, HistoryEntry, Outcome, RanAs
from headrace.config import Settings
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.events import Notice, fields_of, kind_of
from headrace.names import LAKE, TableName
from headrace.semantics import Semantics
from kit.pipelines import Lake, PublishingWorker, define, full

ODD = "<script>alert(1)"
"""A name of a stream table that would be a script if it were not escaped."""

COLUMNS = (Column("k", "bigint", True),)


def watched_project(folder: Path) -> tuple[Settings, Lake]:
    """Make the project; every stream table was refreshed once, but `s.e`, which failed."""
    settings = ready_project(folder / "shop")
    made = Lake(settings.catalog_url, folder)
    made.base("s.a")
    with Catalog.open(settings.catalog_url) as catalog:
        define(catalog, f"b: a; c: a; d: b c; {ODD}: a; e: a", {"d": "1 minute", "e": "1 minute", "*": "10 minutes"})
        catalog.pause([full("e"), full(ODD)])  # nothing is due, so that no Spark is started for it
        for table in catalog.stream_tables():
            catalog.alter_stream_table(table.name, details=details(f"SELECT k FROM {table.sources[0]}", table.sources))
        refresh(settings, made, "b", "c", "d", ODD)
        fail(catalog, "e")
        catalog.write_events([(dt.datetime.now(dt.UTC), kind_of(e), fields_of(e)) for e in (Notice("Hello <b>"),)])
    return settings, made


def refresh(settings: Settings, made: Lake, *names: str) -> None:
    """Refresh stream tables, one after the other."""
    with Catalog.open(settings.catalog_url) as catalog:
        worker = PublishingWorker(made, catalog)
        for name in names:
            worker.refresh((full(name),), worker.heads())


def fail(catalog: Catalog, name: str) -> None:
    """Write down that a refresh failed."""
    now = dt.datetime.now(dt.UTC)
    failed = HistoryEntry(
        lake(f"s.{name}"),
        now - dt.timedelta(seconds=3),
        now,
        RanAs.FULL,
        Outcome.FAILED,
        error_code="QUERY_FAILED",
        error_message="Division by <zero>.",
    )
    catalog.record((failed,))


def details(query: str, sources: tuple[TableName, ...]) -> dict[str, object]:
    """Return what the engine keeps of a definition."""
    uses = tuple(SourceUse(source, COLUMNS) for source in sources)
    assert all(source.catalog == LAKE for source in sources)
    semantics = Semantics("UTC", ansi=True, case_sensitive=False)
    return dict(to_json(Details(query, (), semantics, COLUMNS, uses, {}, (), COLUMNS)))
