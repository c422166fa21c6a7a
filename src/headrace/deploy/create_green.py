"""Creates greens: second generations of stream tables, loaded beside the public ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog import Catalog, Green, Publication, Role, StreamTable, resource_of
from headrace.clock import Clock
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json
from headrace.deploy.blue_settings import settings_of
from headrace.deploy.generation_names import check_deployment, green_name
from headrace.deploy.promotion_checks import refuse_invalid
from headrace.deploy.readiness import refuse_existing
from headrace.errors import HeadraceError, UserError
from headrace.graph.dag import Dag, cycle_error
from headrace.names import TableName
from headrace.ports import Session
from headrace.refresh.definition.create import PATIENCE, Creator
from headrace.refresh.definition.define import check_name, define, require_differential
from headrace.refresh.definition.table_spec import TableSpec
from headrace.refresh.held_leases import holding_leases
from headrace.results.refresh_results import RefreshMode, RefreshResult
from headrace.schedule.options import Ties, parse_options


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
        new: Whether there is no public stream table of that name yet.
        by_itself: Whether nobody asked for it: its deployment brings a new stored layout.
        checks: Queries of rows that must not be, which its deployment is to be promoted by.
    """

    original: TableName
    deployment: str
    query: str | None = None
    schedule: str | None = None
    refresh_mode: RefreshMode | None = None
    options: Mapping[str, str] | None = None
    initialize: bool = True
    new: bool = False
    by_itself: bool = False
    checks: Mapping[str, str] = field(default_factory=dict)


def create_green(
    wanted: GreenSpec, *, catalog: Catalog, session: Session, plans: CompiledViews, creator: Creator, clock: Clock
) -> RefreshResult | None:
    """Create a green and load it.

    Greens of the deployment that read its original read it instead: at once, or once it is loaded, where that is later.

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
            `CYCLE`, `TABLE_EXISTS`, `INVALID_OPTION`, or what is wrong with the query or a check.
    """
    if not wanted.by_itself:
        check_deployment(wanted.deployment)
    greens = catalog.greens()
    refuse_members(wanted.original, greens)
    blue = _public(wanted, catalog)
    name = green_name(wanted.original, wanted.deployment)
    with catalog.reading() as reader:
        refuse_existing([name], reader)
    members = {
        g.original: g.name
        for g in greens
        if g.deployment == wanted.deployment and g.promoted_at is None and not g.public
    }
    redirects = {**members, wanted.original: name}
    details = _defined(wanted, blue, redirects, catalog, session, plans)
    spec = spec_of_green(wanted, blue, name)
    require_differential(details, spec.refresh_mode)
    _refuse_cycles(wanted.original, name, details, redirects, catalog)
    refuse_invalid(wanted.checks, redirects, session, {name: details.output})
    then = {} if blue is None else settings_of(blue)
    role = Role.EXCHANGE if blue is not None else Role.NEW
    green = Green(name, wanted.deployment, wanted.original, then, clock.now(), role=role)
    loaded = creator.create_green(spec, details, green)
    if wanted.initialize:
        _redirect(green, redirects, _readers(wanted.original, members.values(), catalog), catalog, creator)
    return loaded


def drop_with(original: TableName, deployment: str, *, catalog: Catalog, clock: Clock) -> None:
    """Make a public stream table part of a deployment whose promotion drops it.

    Args:
        original: The stream table.
        deployment: The deployment.
        catalog: The catalog.
        clock: Tells the time.

    Raises:
        UserError: `INVALID_NAME`, `STREAM_TABLE_NOT_FOUND`, `GREEN_OF_GREEN`, `IN_DEPLOYMENT`, `GREEN_IN_CYCLE`.
    """
    check_deployment(deployment)
    refuse_members(original, catalog.greens())
    blue = _replaceable(catalog.stream_table(original))
    gone = Green(original, deployment, original, settings_of(blue), clock.now(), role=Role.DROP)
    with holding_leases(catalog, [resource_of(original)], patience=PATIENCE) as leases:
        catalog.publish_or_settle(Publication(greens=(gone,), leases=leases()))


def refuse_members(original: TableName, greens: Sequence[Green]) -> None:
    """Refuse a stream table that belongs to a deployment already.

    Raises:
        UserError: `GREEN_OF_GREEN`, `IN_DEPLOYMENT`.
    """
    if own := next((g for g in greens if g.name == original and not g.public), None):
        raise UserError(
            "GREEN_OF_GREEN",
            f"{original} is itself a generation of {own.original}; there is no green of a green.",
            hint=f"Create a green of {own.original}, once `headrace deploy cancel {own.original}` has ended this one.",
        )
    if there := next((g for g in greens if g.original == original), None):
        promoted = there.keep_until is not None
        until = f", whose promotion can be taken back until {there.keep_until:%F %T} UTC" if promoted else ""
        raise UserError(
            "IN_DEPLOYMENT",
            f"{original} is part of deployment {there.deployment} already{until}.",
            hint=f"{'End' if promoted else 'Promote it, or end'} it with `headrace deploy cancel {original}`.",
        )


def _public(wanted: GreenSpec, catalog: Catalog) -> StreamTable | None:
    """Return the public stream table; None for one that is new."""
    if not wanted.new:
        blue = catalog.find_stream_table(wanted.original)
        if blue is None:
            raise UserError(
                "STREAM_TABLE_NOT_FOUND",
                f"There is no stream table {wanted.original}.",
                hint="One that the deployment is to bring is asked for as new: `headrace deploy create --new`, "
                "`CREATE NEW GREEN STREAM TABLE … AS …`, or `new=True`.",
            )
        return _replaceable(blue)
    check_name(wanted.original)
    if wanted.query is None:
        raise UserError(
            "INVALID_OPTION", f"{wanted.original} is new, so that it needs a query.", hint="There is none to inherit."
        )
    with catalog.reading() as reader:
        refuse_existing([wanted.original], reader)
    return None


def _replaceable(blue: StreamTable) -> StreamTable:
    if from_json(blue.details).cyclic:
        raise UserError(
            "GREEN_IN_CYCLE",
            f"{blue.name} is a member of a cycle, whose members are not exchanged by deployments.",
            hint="Replace it in place with CREATE OR REPLACE STREAM TABLE: the cycle is computed anew, and published "
            "as a whole. Or make the new cycle under other names, and greens of what reads this one over that.",
        )
    return blue


def spec_of_green(wanted: GreenSpec, blue: StreamTable | None, name: TableName) -> TableSpec:
    """Return what is to be created: what was not asked for is as of the public one.

    Args:
        wanted: What was asked for.
        blue: The public stream table; None for one that is new.
        name: What the green is called.
    """
    given = {key.lower(): text for key, text in (wanted.options or {}).items()}
    if blue is None:
        query, schedule, mode, options = wanted.query or "", wanted.schedule, wanted.refresh_mode, given
    else:
        query, schedule = wanted.query or blue.query, wanted.schedule or blue.schedule
        mode, options = wanted.refresh_mode or blue.refresh_mode, {**blue.options, **given}
    return TableSpec(
        name=name,
        query=query,
        schedule=schedule,
        refresh_mode=mode or RefreshMode.AUTO,
        initialize=wanted.initialize,
        options=options,
    )


def _redirect(
    green: Green,
    redirects: Mapping[TableName, TableName],
    readers: Sequence[TableName],
    catalog: Catalog,
    creator: Creator,
) -> None:
    """Have greens read a new one instead of its original; all, or it is not created."""
    done: list[TableName] = []
    try:
        for reader in readers:
            creator.define_green_again(reader, redirects)
            done.append(reader)
    except BaseException as error:
        before = {public: name for public, name in redirects.items() if name != green.name}
        try:
            _undo(green, before, done, catalog, creator)
        except HeadraceError as why:
            if isinstance(error, HeadraceError):
                stays = (
                    f"{green.name} stays, as greens that read it could not be defined again over {green.original}: "
                    f"{why.message} `headrace deploy cancel {green.original}` ends the deployment."
                )
                error.detail = "\n".join(text for text in (error.detail, stays) if text)
        raise


def _undo(
    green: Green,
    before: Mapping[TableName, TableName],
    readers: Sequence[TableName],
    catalog: Catalog,
    creator: Creator,
) -> None:
    """Have greens read what they read before a new one was there, and drop that.

    Raises:
        HeadraceError: That failed; then it is a member of its deployment as before, and ends with it.
    """
    creator.drop_together((), ended=(green.name,), patience=PATIENCE)  # or they would be defined over it again
    try:
        for reader in readers:
            creator.define_green_again(reader, before)
        creator.drop_together((green.name,), patience=PATIENCE)
    except BaseException:
        with holding_leases(catalog, [resource_of(green.name)], patience=PATIENCE) as leases:
            catalog.publish_or_settle(Publication(greens=(green,), leases=leases()))
        raise


def _defined(
    wanted: GreenSpec,
    blue: StreamTable | None,
    redirects: Mapping[TableName, TableName],
    catalog: Catalog,
    session: Session,
    plans: CompiledViews,
) -> Details:
    """Analyse the green's query, an inherited one under the settings that it was written with."""
    old = None if blue is None or wanted.query else from_json(blue.details)
    options = {**(blue.options if blue else {}), **(wanted.options or {})}
    others = {public: green for public, green in redirects.items() if public != wanted.original}
    details, _ = define(
        wanted.query or (blue.query if blue else ""),
        catalog=catalog,
        session=session,
        plans=plans,
        namespace=None if old is None else old.namespace,
        semantics=None if old is None else old.semantics,
        redirects=others,
        deployment=wanted.deployment,
        ties=parse_options(options).ties or (Ties.REFINE if old is None else old.ties),
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
            raise cycle_error(path, of_greens=True)


def _readers(original: TableName, greens: Iterable[TableName], catalog: Catalog) -> list[TableName]:
    """Return greens of the deployment that read the public table so far."""
    reads = catalog.dependencies()
    return [green for green in greens if original in reads.get(green, ())]
