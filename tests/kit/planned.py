"""What a refresh is planned from, of a query without a lake."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.relations import Scan
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler.compiled_view import CompiledView
from headrace.definitions.details import Details, SourceUse
from headrace.names import LAKE, TableName
from headrace.physical.facts import Facts, SourceFacts
from headrace.results.refresh_results import RefreshMode
from headrace.semantics import Semantics
from headrace.sql.refinements import refined

NAME = TableName(LAKE, ("s",), "planned")


def facts_of(
    view: CompiledView,
    sources: Mapping[TableName, SourceFacts],
    *,
    state: int | None,
    companion: int = 0,
    log: bool = False,
) -> Facts:
    """The facts of a query under AUTO.

    Args:
        view: The query.
        sources: What it reads.
        state: Rows in the stream table.
        companion: Rows in its companion, if it has one.
        log: Whether it keeps a change log.
    """
    scans = [node for node in walk(view.tree) if isinstance(node, Scan)] if view.tree is not None else []
    read = {name: {c for s in scans if s.source == name for _, c in s.fields} for name in view.sources}
    uses = tuple(SourceUse(name, tuple(Column(c, "int") for c in sorted(read[name]))) for name in view.sources)
    query = refined(view.query, view.refinements)
    details = Details(query, (), Semantics(), view.output, uses, {}, (), view.companion)
    stored = TableName(LAKE, ("s",), "companion") if view.companion is not None else None
    return Facts(
        NAME,
        details,
        RefreshMode.AUTO,
        tuple(sources[name] for name in view.sources),
        state,
        stored,
        TableName(LAKE, ("s",), "log") if log else None,
        1,
        state_at="state_table",
        companion_at="companion_table" if stored is not None else None,
        companion_rows=companion,
    )


def source(name: TableName, rows: int | None, changed: int | None = 0, **more: object) -> SourceFacts:
    """A source.

    Args:
        name: Its name.
        rows: Rows it has now; None where that is not known.
        changed: Rows that changed, None where that is not known; 0: it stands still.
        more: Further facts of it.
    """
    change = None if changed == 0 else "c"
    return SourceFacts(name, "t", "t", 2, change, change_rows=changed, rows=rows, **more)  # type: ignore[arg-type]
