"""Creates greens: second generations of stream tables, loaded beside the public ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headrace.catalog import Catalog, Green, StreamTable
from headrace.clock import Clock
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json
from headrace.deploy.blue_settings import settings_of
from headrace.deploy.generation_names import check_deployment, green_name
from headrace.errors import UserError
from headrace.graph.dag import Dag, cycle_error
from headrace.names import LAKE, TableName
from headrace.ports import Session
from headrace.refresh.definition.create import Creator
from headrace.refresh.definition.define import define, require_differential
from headrace.refresh.definition.table_spec import TableSpec
from headrace.results.refresh_results import RefreshMode, RefreshResult


@dataclass(frozen=True, slots=True)
class GreenSpec:
    """A green as the user asked for it; what is None is as of the public stream table.

    Args:
        original: The public stream table.
        deployment: The deployment that it is to belong to.
        query: Its query.
        schedule: When to refresh, as text.
        refresh_mode: AUTO, FULL or DIFFERENTIAL.
        options: How it is scheduled.
        initialize: Load it now; else a scheduler, or the next refresh, does.
    """

    original: TableName
    deployment: str
    query: str | None = None
    schedule: str | None = None
    refresh_mode: RefreshMode | None = None
    options: Mapping[str, str] | None = None
    initialize: bool = True


def create_green(
    wanted: GreenSpec, *, catalog: Catalog, session: Session, plans: CompiledViews, creator: Creator, clock: Clock
) -> RefreshResult | None:
    """Create a green and load it.

    Greens of the deployment that read its original read it instead.

    Args:
        wanted: The green.
        catalog: The catalog.
        session: The user's session.
        plans: Compiles.
        creator: Creates it.
        clock: Tells the time.

    Returns:
        The first load; None when `initialize` is off.

    Raises:
        UserError: `INVALID_NAME`, `STREAM_TABLE_NOT_FOUND`, `GREEN_OF_GREEN`, `IN_DEPLOYMENT`, `GREEN_IN_CYCLE`,
            `CYCLE`, `TABLE_EXISTS`, or what is wrong with the query.
    """
    check_deployment(wanted.deployment)
    greens = catalog.greens()
    blue = _original(wanted, catalog, greens)
    name = green_name(wanted.original, wanted.deployment)
    if name in catalog.pointers(LAKE, [name]):
        raise UserError(
            "TABLE_EXISTS",
            f"The green of {wanted.original} would be {name}, which exists already.",
            hint="Choose another name for the deployment, or drop that table first.",
        )
    members = {g.original: g.name for g in greens if g.deployment == wanted.deployment and g.promoted_at is None}
    redirects = {**members, wanted.original: name}
    details = _defined(wanted, blue, redirects, catalog, session, plans)
    mode = wanted.refresh_mode or blue.refresh_mode
    require_differential(details, mode)
    _refuse_cycles(wanted.original, name, details, redirects, catalog)
    green = Green(name, wanted.deployment, wanted.original, settings_of(blue), clock.now())
    spec = TableSpec(
        name=name,
        query=wanted.query or blue.query,
        schedule=wanted.schedule or blue.schedule,
        refresh_mode=mode,
        initialize=wanted.initialize,
        options=dict(blue.options) if wanted.options is None else wanted.options,
    )
    loaded = creator.create_green(spec, details, green)
    for reader in _readers(wanted.original, members.values(), catalog):
        creator.define_green_again(reader, redirects)
    return loaded


def _original(wanted: GreenSpec, catalog: Catalog, greens: tuple[Green, ...]) -> StreamTable:
    """Return the public stream table; refuse one of which there can be no green."""
    if own := next((g for g in greens if g.name == wanted.original), None):
        raise UserError(
            "GREEN_OF_GREEN",
            f"{wanted.original} is itself a generation of {own.original}; there is no green of a green.",
            hint=f"Create a green of {own.original}, once `headrace deploy cancel {own.original}` has ended this one.",
        )
    blue = catalog.stream_table(wanted.original)
    if there := next((g for g in greens if g.original == wanted.original), None):
        until = (
            "" if there.keep_until is None else f", whose promotion can be taken back until {there.keep_until:%F %T}"
        )
        raise UserError(
            "IN_DEPLOYMENT",
            f"{wanted.original} is part of deployment {there.deployment} already{until}.",
            hint=f"Promote it, or end it with `headrace deploy cancel {wanted.original}`.",
        )
    if from_json(blue.details).cyclic:
        raise UserError(
            "GREEN_IN_CYCLE",
            f"{wanted.original} is a member of a cycle, and these are replaced in place only.",
            hint="CREATE OR REPLACE STREAM TABLE gives the cycle a new definition.",
        )
    return blue


def _defined(
    wanted: GreenSpec,
    blue: StreamTable,
    redirects: Mapping[TableName, TableName],
    catalog: Catalog,
    session: Session,
    plans: CompiledViews,
) -> Details:
    """Analyse the green's query, an inherited one under the settings that it was written with."""
    old = from_json(blue.details)
    others = {public: green for public, green in redirects.items() if public != wanted.original}
    details, _ = define(
        wanted.query or blue.query,
        catalog=catalog,
        session=session,
        plans=plans,
        namespace=None if wanted.query else old.namespace,
        semantics=None if wanted.query else old.semantics,
        redirects=others,
        deployment=wanted.deployment,
    )
    return replace(details, redirects=redirects)


def _refuse_cycles(
    original: TableName,
    name: TableName,
    details: Details,
    redirects: Mapping[TableName, TableName],
    catalog: Catalog,
) -> None:
    """Refuse a green by which tables would read each other, before its promotion or after it.

    Raises:
        UserError: `CYCLE`.
    """
    reads, public = catalog.dependencies(), {green: blue for blue, green in redirects.items()}
    sources = tuple(use.name for use in details.sources)
    promoted = {blue: reads[green] for blue, green in redirects.items() if green in reads} | {original: sources}
    named = {blue: tuple(public.get(s, s) for s in own) for blue, own in promoted.items()}
    for graph, place in ((Dag({**reads, name: sources}), name), (Dag({**reads, **named}), original)):
        if path := graph.cycle(through=place):
            raise cycle_error(path)


def _readers(original: TableName, greens: Iterable[TableName], catalog: Catalog) -> list[TableName]:
    """Return greens of the deployment that read the public table so far."""
    reads = catalog.dependencies()
    return [green for green in greens if original in reads.get(green, ())]
