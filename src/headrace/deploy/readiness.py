"""Refuses exchanges by who belongs together, what was altered, and which names are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.catalog import Catalog, Green, Role, StreamTable
from headrace.catalog.state.reader import Reader
from headrace.definitions.details import from_json
from headrace.deploy.blue_settings import altered
from headrace.deploy.deployment_results import BrokenReader
from headrace.errors import EnvironmentFault, UserError
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName


def find(catalog: Catalog, *, name: TableName | None = None, deployment: str | None = None) -> tuple[Green, ...]:
    """Return the second generations of one stream table, or of a deployment.

    Args:
        catalog: The catalog.
        name: The public stream table, or its second generation.
        deployment: The deployment.

    Raises:
        UserError: `DEPLOYMENT_NOT_FOUND`.
    """
    greens = catalog.greens()
    if name is not None:
        found = tuple(g for g in greens if name in (g.original, g.name))
        what = f"{name} is in no deployment"
    else:
        found = tuple(g for g in greens if g.deployment == deployment)
        what = f"There is no deployment {deployment}"
    if not found:
        raise UserError(
            "DEPLOYMENT_NOT_FOUND",
            f"{what}.",
            hint="`headrace deploy status` lists those that there are; `headrace deploy create` begins one.",
        )
    return found


def ordered(chosen: Sequence[Green], catalog: Catalog) -> tuple[Green, ...]:
    """Return second generations, producers first.

    Raises:
        UserError: `ALREADY_PROMOTED`.
        EnvironmentFault: `DEPLOYMENT_CHANGED`.
    """
    of, graph = {g.name: g for g in chosen}, Dag(catalog.dependencies())
    refuse_changed(chosen, catalog.greens())  # after the graph was read, which else might lack one of them
    return tuple(of[name] for name in graph.order(of))


def refuse_torn(
    chosen: Sequence[Green],
    greens: Sequence[Green],
    reads: Mapping[TableName, Sequence[TableName]],
    *,
    dropped: bool = False,
) -> None:
    """Refuse to exchange one of several generations that read each other.

    Likewise to drop one that another reads.

    Args:
        chosen: What is exchanged or dropped.
        greens: All second generations.
        reads: By stream table, what it reads.
        dropped: Whether it is dropped: then what it reads itself may stay.

    Raises:
        UserError: `DEPLOYMENT_TORN`.
    """
    names = {g.name for g in chosen if not (dropped and g.public)}
    deployment = chosen[0].deployment
    rest = {g.name for g in greens if g.deployment == deployment} - names
    for reader, sources in reads.items():
        for source in sources:
            if (reader in names and source in rest and not dropped) or (reader in rest and source in names):
                raise UserError(
                    "DEPLOYMENT_TORN",
                    f"{reader} reads {source}, so that both change at once or neither.",
                    hint=f"Name the whole deployment: `--all {deployment}`, or `DEPLOYMENT {deployment}` in SQL.",
                )


def refuse_left_behind(
    chosen: Sequence[Green], tables: Mapping[TableName, StreamTable], reads: Mapping[TableName, Sequence[TableName]]
) -> None:
    """Refuse generations that read another one, in a table's place, which is no member now.

    So reads one whose deployment somebody is taking that other one out of: its rows are not those of the table that
    its definition will name. Members are `refuse_torn`'s to refuse.

    Args:
        chosen: What is exchanged.
        tables: All stream tables.
        reads: By stream table, what it reads.

    Raises:
        UserError: `DEPLOYMENT_TORN`.
    """
    names = {g.name for g in chosen}
    for green in chosen:
        table = tables.get(green.name)
        redirects = {} if table is None else from_json(table.details).redirects
        for public, source in redirects.items():
            if source in reads.get(green.name, ()) and source not in names:
                raise UserError(
                    "DEPLOYMENT_TORN",
                    f"{green.name} reads {source} in the place of {public}, and that is not exchanged along.",
                    hint=f"Begin again: `headrace deploy cancel {green.original}`, then `headrace deploy create`.",
                )


def refuse_changed(chosen: Sequence[Green], now: Sequence[Green]) -> None:
    """Refuse second generations that somebody else has exchanged, or dropped, meanwhile.

    Args:
        chosen: The generations, as they were when they were looked up.
        now: All there are.

    Raises:
        UserError: `ALREADY_PROMOTED`.
        EnvironmentFault: `DEPLOYMENT_CHANGED`, retryable.
    """
    there = {(g.original, g.deployment): g for g in now}
    for green in chosen:
        found = there.get((green.original, green.deployment))
        if found is not None and (found.promoted_at is None) != (green.promoted_at is None):
            raise already_exchanged(green)
        if found != green:
            raise EnvironmentFault(
                "DEPLOYMENT_CHANGED",
                f"{green.name} was {'dropped' if found is None else 'changed'} by somebody else just now; nothing was "
                "changed by this.",
                hint="Look at `headrace deploy status`, then try again.",
                retryable=True,
            )


def already_exchanged(green: Green) -> UserError:
    """Return the error for generations that were exchanged already."""
    return UserError(
        "ALREADY_PROMOTED",
        f"The generations of {green.original} have been exchanged already.",
        hint="`headrace deploy status` shows where its deployment stands; `headrace deploy rollback` takes it back.",
    )


def refuse_altered(green: Green, tables: Mapping[TableName, StreamTable]) -> None:
    """Refuse a generation whose public table was altered since it was made.

    Raises:
        UserError: `GREEN_OUTDATED`.
    """
    if green.role is Role.NEW and green.promoted_at is None:
        return
    table = tables[green.original if green.role is Role.EXCHANGE else green.name]
    if what := altered(green.blue, table):
        raise UserError(
            "GREEN_OUTDATED",
            f"{', '.join(what).capitalize()} of {green.original} changed since "
            f"{'it became part of' if green.public else f'{green.name} was made in'} deployment {green.deployment}; "
            "an exchange would undo that.",
            hint=f"Undo it, or begin again: `headrace deploy cancel {green.original}`, then `headrace deploy create`.",
        )


def refuse_existing(names: Sequence[TableName], reader: Reader) -> None:
    """Refuse names that something has already, or had while stream tables read it that still do.

    Raises:
        UserError: `TABLE_EXISTS`.
    """
    there = reader.pointers(LAKE, names).keys() | ({r.name for r in reader.relations()} - reader.unused(names))
    if taken := next((name for name in names if name in there), None):
        raise UserError(
            "TABLE_EXISTS",
            f"A table of the deployment is to be called {taken}, and there is, or was, one of that name already; "
            "nothing was changed.",
            hint=f"Drop {taken}, or choose another name for the table or the deployment.",
        )


def left_readers(chosen: Sequence[Green], reads: Mapping[TableName, Sequence[TableName]]) -> tuple[BrokenReader, ...]:
    """Return who would still read what is public no longer.

    Args:
        chosen: The members that are exchanged at once.
        reads: By stream table, what it reads.
    """
    leaving = {g.name for g in chosen if g.public}
    replaced = leaving | {g.original for g in chosen if g.role is Role.EXCHANGE}
    return tuple(
        BrokenReader(str(reader), str(source), None, "is gone")
        for reader, sources in sorted(reads.items())
        for source in sources
        if source in leaving and reader not in replaced
    )
