"""Turns the text of a stream table into its definition: sources, columns, obstacles to IVM."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from headrace.algebra.relations import Relation, Scan
from headrace.algebra.schema import Column
from headrace.algebra.types import mentions
from headrace.catalog import Catalog
from headrace.compiler.compiled_view import CompiledView
from headrace.definitions.compiled_views import CompiledViews, found_at, pinned_free, places_as_written
from headrace.definitions.details import Details, SourceUse
from headrace.definitions.foreign_caches import look_anew
from headrace.definitions.function_versions import functions_called
from headrace.definitions.user_text import NOWHERE_ELSE, relations_read
from headrace.errors import HeadraceError, Place, Unsupported, UserError, place_at
from headrace.lake.clock_table import CLOCK_COLUMNS
from headrace.names import (
    CLOCK,
    CLOCK_COLUMN,
    LAKE,
    METADATA_COLUMNS,
    RESERVED_PREFIX,
    STAGING,
    SYSTEM_NAMESPACE,
    TableName,
    invalid_name,
)
from headrace.ports import Runner, Session
from headrace.refresh.cut.cut import metadata
from headrace.refresh.definition.catalog_views import CatalogViews
from headrace.refresh.definition.metadata_columns import refuse_metadata_columns
from headrace.refresh.definition.refused_queries import refusals_of
from headrace.refresh.definition.source_keys import SourceKeys
from headrace.results.refresh_results import RefreshMode
from headrace.schedule.options import Ties
from headrace.semantics import Semantics
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.sql.references import common_table_expressions, references
from headrace.suggestions import suggesting_tables

NONE_STAGED: Mapping[TableName, Details] = {}


def check_name(name: TableName) -> None:
    """Refuse names a stream table cannot have.

    Raises:
        UserError: `INVALID_NAME`.
    """
    if name.catalog != LAKE:
        raise UserError(
            "INVALID_NAME",
            f"A stream table lives in catalog {LAKE}, not in {name.catalog}.",
            hint=f"Write {'.'.join(name.parts[1:])}.",
        )
    if SYSTEM_NAMESPACE in name.namespace or not name.namespace:
        raise invalid_name(str(name))


def define(
    query: str,
    *,
    catalog: Catalog,
    session: Session,
    plans: CompiledViews,
    namespace: tuple[str, ...] | None = None,
    semantics: Semantics | None = None,
    redirects: Mapping[TableName, TableName] = NOWHERE_ELSE,
    deployment: str = "",
    staged: Mapping[TableName, Details] = NONE_STAGED,
    ties: Ties = Ties.REFINE,
) -> tuple[Details, CompiledView | None]:
    """Analyse a query; nothing is created.

    Args:
        query: The defining query.
        catalog: To find views.
        session: The user's session.
        plans: Compiles.
        namespace: Current namespace; the session's when None.
        semantics: Settings; the session's when None.
        redirects: Of a second generation: relations in whose place others are read.
        deployment: The deployment that it belongs to; "" for a public stream table.
        staged: Stream tables that are defined anew, too, and not published yet: it is defined over what they become.
        ties: What becomes of orders that leave ties.

    Raises:
        UserError: `SYNTAX_ERROR`, `COLUMN_NOT_FOUND`, `TABLE_NOT_FOUND`, `DUPLICATE_COLUMN`, `GREEN_SOURCE`,
            `PARAMETER_UNBOUND`, …
        Unsupported: `TIME_TRAVEL_SOURCE`, `METADATA_COLUMN`.
    """
    query = query.rstrip().rstrip(";").rstrip()
    namespace = session.namespace() if namespace is None else namespace
    runner = session.runner()
    semantics = runner.semantics if semantics is None else semantics
    catalogs = session.catalogs()  # of Spark, which runs by now, not of the project's settings alone
    case_sensitive = semantics.case_sensitive
    refuse_time_travel(query, case_sensitive=case_sensitive)
    refuse_variables(query)
    shown = CatalogViews(catalog, catalogs, case_sensitive=case_sensitive)
    sources, views = relations_read(
        query, namespace=namespace, catalogs=catalogs, view_text=shown.text, case_sensitive=case_sensitive
    )
    _refuse_greens(sources, catalog, deployment)
    sources = tuple(dict.fromkeys(redirects.get(s, s) for s in sources))
    for source in sources:
        with suppress(HeadraceError):  # one that is not there is told of with its place in the query
            look_anew((source,), runner)
    if own := next((s for s in sources if s.catalog == STAGING), None):
        raise UserError("INVALID_NAME", f"{own} cannot be read: catalog {STAGING} is Headrace's own.")
    details = Details(query, namespace, semantics, (), (), views, (), None, shown.locations)
    details = replace(details, redirects=redirects, deployment=deployment)
    details = replace(details, functions=functions_called((query, *views.values()), session.functions()))
    runner = runner.under(semantics)
    for text in (query, *views.values()):
        _refuse_unseen(text, runner)
    details = replace(details, views=_as_shown(details, shown, catalogs, runner, staged))
    with places_as_written(details, catalogs), suggesting_tables(lambda: relations_named(catalog)):
        output = runner.describe(pinned_free(details, catalogs, staged=staged))
    _check_output(output, query)
    details = replace(details, output=output, sources=_all_columns(session, semantics, sources, staged))
    held = {use.name: use.all for use in details.sources}
    refuse_metadata_columns(details, lambda: runner.describe(pinned_free(details, catalogs, held, staged)))
    keys, disabled = SourceKeys(catalog, staged).of(sources), plans.disabled_in_definitions
    details = replace(details, source_keys=keys, disabled_passes=disabled, ties=ties)
    refine, in_order = ties is not Ties.REFUSE, ties is Ties.REFINE_FLOATS
    view = plans.compile(details, output, staged=staged, refine=refine, in_order=in_order, moving=True)
    details = replace(details, refinements=view.refinements)
    if CLOCK in view.sources:
        details = replace(details, sources=(*details.sources, SourceUse(CLOCK, CLOCK_COLUMNS, (CLOCK_COLUMN,))))
    if view.tree is None:
        every = tuple(_identified(use, catalog, session, staged) for use in details.sources)
        return replace(details, sources=every, refusals=refusals_of(view)), None
    used = used_columns(view.tree)
    narrowed = tuple(_narrowed(use, used.get(use.name, frozenset())) for use in details.sources)
    narrowed = tuple(_identified(use, catalog, session, staged) for use in narrowed)
    details = replace(details, sources=narrowed, companion=view.companion)
    return replace(details, rests_on_keys=view.rests_on_keys, keys=view.keys), view


def relations_named(catalog: Catalog) -> list[str]:
    """Return the names of tables and views of `lake`, without what is kept beside stream tables."""
    return [str(name) for name in catalog.pointers(LAKE) if SYSTEM_NAMESPACE not in name.namespace]


def _refuse_greens(sources: Iterable[TableName], catalog: Catalog, deployment: str) -> None:
    """Refuse a query that names a second generation, which ends with its deployment."""
    greens = {green.name: green for green in catalog.greens() if not green.public}
    if other := next((greens[s] for s in sources if s in greens), None):
        own = other.deployment == deployment
        raise UserError(
            "GREEN_SOURCE",
            f"{other.name} belongs to deployment {other.deployment}, and is gone when that ends; "
            "stream tables cannot read it by that name.",
            hint=f"Write {other.original}: within the deployment, the green is read for it."
            if own
            else "Read the public table, or make the reader part of the deployment: `headrace deploy create`.",
        )


def _refuse_unseen(query: str, runner: Runner) -> None:
    """Refuse a text in which Spark finds a table that is not found here.

    Its changes would go unnoticed.
    """
    known = {", ".join(each.parts).lower() for each in references(query)} | common_table_expressions(query)
    if unseen := sorted(name for name in runner.relations(query) if name.lower() not in known):
        raise UserError(
            "QUERY_READ_DIFFERENTLY",
            f"Spark reads {unseen[0].replace(', ', '.')} in the query, which Headrace does not find there.",
            hint="Put names that are keywords into back quotes, and columns behind their table's name.",
        )


def _narrowed(use: SourceUse, columns: frozenset[str]) -> SourceUse:
    return replace(use, columns=tuple(c for c in use.columns if c.name in columns))


def _identified(use: SourceUse, catalog: Catalog, session: Session, staged: Collection[TableName]) -> SourceUse:
    """Return a source with its table's identity and column ids."""
    if use.name == CLOCK:
        return use
    at = found_at(use.name, staged)
    pointer = catalog.pointers(at.catalog, [at]).get(at) if use.name.catalog == LAKE else None
    location = pointer.metadata_location if pointer is not None else session.location(use.name)
    return use if location is None else use.of_table(metadata(location))


def used_columns(tree: Relation) -> dict[TableName, frozenset[str]]:
    """Return the columns a query reads of every source."""
    found: dict[TableName, frozenset[str]] = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        stack.extend(node.inputs)
        if isinstance(node, Scan):
            found[node.source] = found.get(node.source, frozenset()) | {column for _, column in node.fields}
    return found


def _all_columns(
    session: Session, semantics: Semantics, sources: tuple[TableName, ...], staged: Collection[TableName]
) -> tuple[SourceUse, ...]:
    runner = session.runner().under(semantics)
    found = ((name, runner.describe(f"SELECT * FROM {found_at(name, staged).sql}")) for name in sources)
    return tuple(SourceUse(name, columns, tuple(c.name for c in columns)) for name, columns in found)


def refuse_time_travel(query: str, *, case_sensitive: bool = False) -> None:
    """Refuse a source pinned by the user, as it would never change.

    Raises:
        Unsupported: `TIME_TRAVEL_SOURCE`.
    """
    for reference in references(query, case_sensitive=case_sensitive):
        if reference.time_travel:
            raise Unsupported(
                "TIME_TRAVEL_SOURCE",
                "A stream table cannot read a source at a fixed version, with options or by sample.",
                hint="Read the table plainly; hr.at() reads the past.",
                place=place_at(query, reference.start),
            )


_VARIABLE = re.compile(r"\$\{(?:\w+?:)?\S+?\}")
"""Names in whose place Spark puts settings of the session and variables of the process, also in string literals."""


def refuse_variables(query: str) -> None:
    """Refuse a text in which each session puts a value of its own.

    Raises:
        UserError: `PARAMETER_UNBOUND`.
    """
    tokens = tokenize(query)
    for found in _VARIABLE.finditer(query):
        if any(token.start < found.end() and found.start() < token.end for token in tokens):  # else in a comment
            raise UserError(
                "PARAMETER_UNBOUND",
                f"The query has a variable, {found[0]}: Spark puts a value of each session in its place.",
                hint="Write the value in its place; '$' || '{x}' is such a text itself.",
                place=place_at(query, found.start()),
            )


def view_locations(catalog: Catalog, views: Iterable[TableName]) -> dict[TableName, str]:
    """Return the metadata files of views; those that are gone, or are no views, are left out."""
    names = tuple(name for name in views if name.catalog == LAKE)
    found = catalog.pointers(LAKE, names) if names else {}
    return {name: pointer.metadata_location for name, pointer in found.items() if pointer.is_view}


def _as_shown(
    details: Details,
    shown: CatalogViews,
    catalogs: frozenset[str],
    runner: Runner,
    staged: Collection[TableName],
) -> dict[TableName, str]:
    """Return the texts of a definition's views with the columns that Spark shows of them.

    Raises:
        UserError: What Spark says of a view some column of which is wider by now than the view declares.
    """
    known = replace(details, views={})

    def describe(text: str) -> tuple[Column, ...]:
        return runner.describe(pinned_free(known, catalogs, staged=staged, text=text))

    for name, plain in details.views.items():
        text = shown.text(name, describe) or plain
        if text != plain and not staged and not details.redirects:
            _refuse_narrower(name, runner)
        known = replace(known, views={**known.views, name: text})
    return dict(known.views)


def _refuse_narrower(view: TableName, runner: Runner) -> None:
    """Refuse a view that Spark does not read: a cast to a narrower type would lose values."""
    try:
        runner.describe(f"SELECT * FROM {view.sql}")
    except HeadraceError as error:
        error.place, error.hint = None, f"Create view {view} again."  # the place is in a text that nobody wrote
        raise


def _check_output(output: tuple[Column, ...], query: str) -> None:
    seen: set[str] = set()
    for column in output:
        if column.name.lower() in seen:
            raise UserError(
                "DUPLICATE_COLUMN",
                f"The query returns two columns named {column.name}.",
                hint="Give one of them another name with AS.",
            )
        seen.add(column.name.lower())
        if column.name.lower().startswith(RESERVED_PREFIX):
            raise UserError(
                "RESERVED_COLUMN", f"Column names beginning with {RESERVED_PREFIX} are Headrace's own: {column.name}."
            )
        if column.name.lower() in METADATA_COLUMNS:
            raise UserError(
                "RESERVED_COLUMN",
                f"Tables of Iceberg cannot have a column {column.name}, which is Iceberg's own.",
                hint="Give it another name with AS.",
            )
        if mentions(column.type, "void"):
            raise Unsupported(
                "TYPE_NOT_STORABLE",
                f"Column {column.name} has no type: it is always NULL.",
                hint=f"Give it one: CAST(NULL AS STRING) AS {column.name}.",
            )
        if mentions(column.type, "interval"):
            raise Unsupported(
                "TYPE_NOT_STORABLE",
                f"Column {column.name} has type {column.type}, which no Iceberg table can hold.",
                hint=f"Cast it in the query, for example CAST({column.name} AS STRING).",
            )
    if not output:
        raise UserError("SYNTAX_ERROR", "The query returns no columns.", detail=query[:200])


def require_differential(details: Details, mode: RefreshMode) -> None:
    """Refuse DIFFERENTIAL for a query that cannot be maintained.

    Raises:
        Unsupported: `NOT_MAINTAINABLE` with the construct's place in the query.
    """
    if mode is not RefreshMode.DIFFERENTIAL or details.incremental:
        return
    first = details.refusals[0]
    place = None
    if first.line is not None and first.column is not None:
        place = Place(first.line, first.column, (details.query.splitlines() or [""])[first.line - 1])
    raise Unsupported(
        "NOT_MAINTAINABLE",
        f"This query cannot be refreshed DIFFERENTIAL: {first.message}",
        hint=first.hint or "Use refresh mode AUTO or FULL.",
        place=place,
    )


def sources_of(details: Details) -> tuple[TableName, ...]:
    """Return the relations a definition reads."""
    return tuple(use.name for use in details.sources)
