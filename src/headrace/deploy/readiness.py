"""Whether generations can be exchanged: who belongs together, and what stands against it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

from headrace.catalog import Catalog, Green, Role, SchedulingState, Status, StreamTable
from headrace.catalog.state.reader import Reader
from headrace.deploy.blue_settings import altered
from headrace.deploy.deployment_results import BrokenReader
from headrace.deploy.root_versions import RootVersions, at_one_cut, behind, behind_seconds, within_threshold
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName

AGAIN = "Try again; a pause of the scheduler (`headrace pause`) helps where production never stands still."


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


def refuse_torn(chosen: Sequence[Green], catalog: Catalog, *, dropped: bool = False) -> None:
    """Refuse to exchange one of several generations that read each other.

    Likewise to drop one that another reads.

    Args:
        chosen: What is exchanged or dropped.
        catalog: The catalog.
        dropped: Whether it is dropped: then what it reads itself may stay.

    Raises:
        UserError: `DEPLOYMENT_TORN`.
    """
    names = {g.name for g in chosen if not (dropped and g.public)}
    deployment = chosen[0].deployment
    rest = {g.name for g in catalog.greens() if g.deployment == deployment} - names
    for reader, sources in catalog.dependencies().items():
        for source in sources:
            if (reader in names and source in rest and not dropped) or (reader in rest and source in names):
                raise UserError(
                    "DEPLOYMENT_TORN",
                    f"{reader} reads {source}, so that both change at once or neither.",
                    hint=f"Name the whole deployment: `--all {deployment}`, or `DEPLOYMENT {deployment}` in SQL.",
                )


def refuse_unready(
    chosen: Sequence[Green], catalog: Catalog, now: dt.datetime, lag_threshold: dt.timedelta = dt.timedelta(0)
) -> None:
    """Refuse greens that are not loaded, failed, behind, or outdated.

    Args:
        chosen: The greens.
        catalog: The catalog.
        now: The time.
        lag_threshold: Those that are behind for no longer are not refused.

    Raises:
        UserError: `GREEN_OUTDATED`, `GREEN_FAILED`.
        EnvironmentFault: `GREEN_LOADING`, `GREEN_BEHIND`, both retryable.
    """
    scheduling = catalog.scheduling_states()
    with catalog.reading() as reader:
        tables = {t.name: t for t in reader.stream_tables()}
        loaded, roots = reader.newest_versions(), RootVersions(reader)
        refuse_changed(chosen, reader.greens())
        for green in chosen:
            refuse_altered(green, tables)
            if green.role is Role.DROP:
                continue
            if (trouble := _trouble(tables[green.name], scheduling.get(green.name, SchedulingState()))) is not None:
                raise trouble
            if green.name not in loaded or tables[green.name].status is Status.NEW:
                raise EnvironmentFault(
                    "GREEN_LOADING",
                    f"{green.name} has not been loaded yet; nothing was promoted.",
                    hint=f"Wait for the scheduler, or run `headrace refresh {green.name}`.",
                    retryable=True,
                )
            own = roots.of(green.name)
            late = behind(own, roots.of(green.original))
            seconds = behind_seconds(reader, own, late, now)
            if not within_threshold(late, seconds, lag_threshold.total_seconds()):
                listed = ", ".join(f"{number} version(s) of {root}" for root, number in sorted(late.items()))
                raise EnvironmentFault(
                    "GREEN_BEHIND",
                    f"{green.name} is behind {green.original} by {listed}; nothing was promoted.",
                    hint=f"Wait for the scheduler, or run `headrace refresh {green.name}`.",
                    retryable=True,
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


def _trouble(table: StreamTable, known: SchedulingState) -> HeadraceError | None:
    """Return the error for a generation that failed, is stopped, or differs from its query."""
    why = None
    if table.status is Status.STOPPED:
        why = table.stopped_reason or "it is stopped"
    elif known.fuse_at is not None:
        why = "its fuse has blown"
    elif known.error_code is not None:
        why = f"its last refresh failed ({known.error_code}): {known.error_message}"
    elif known.skipped_at is not None:
        why = f"{known.skipped_rows:,} changed rows of its sources were skipped"
    if why is None:
        return None
    return UserError(
        "GREEN_FAILED",
        f"{table.name} cannot be promoted: {why}",
        hint=f"`headrace deploy cancel {table.name}`, or mend it and refresh it; skipped rows come in with --full.",
    )


def refuse_taken(chosen: Sequence[Green], after: Sequence[Green], catalog: Catalog) -> None:
    """Refuse an exchange that would give a table the name of another one.

    Args:
        chosen: The members.
        after: The same, as they are to be.
        catalog: The catalog.

    Raises:
        UserError: `TABLE_EXISTS`.
    """
    refuse_existing([g.name for g in after if g.name not in {now.name for now in chosen}], catalog)


def refuse_existing(names: Sequence[TableName], catalog: Catalog) -> None:
    """Refuse names that something has already, or had while stream tables read it that still do.

    Raises:
        UserError: `TABLE_EXISTS`.
    """
    with catalog.reading() as reader:
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


def refuse_apart(
    chosen: Sequence[Green], reader: Reader, units: Mapping[TableName, Collection[TableName]]
) -> dict[TableName, int]:
    """Refuse generations that do not stand at one cut.

    A public table that cannot be refreshed any more may be behind: its green moves it on. Not so where it is published
    together with others, which would stay behind.

    Args:
        chosen: The second generations.
        reader: One state of the catalog.
        units: By public stream table, what is published together with it.

    Returns:
        The versions of root sources at which they stand.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    roots, frontiers = RootVersions(reader), reader.frontiers()
    newest = {n: v.version for n, v in reader.newest_versions().items()}
    names, originals = {g.name for g in chosen}, {g.original for g in chosen}
    cut: dict[TableName, int] = {}
    for green in chosen:
        if green.public:
            continue  # it leaves: nobody reads it together with the others afterwards
        own, public = roots.of(green.name), roots.of(green.original)
        alone = set(units.get(green.original, ())) <= originals
        back = [s for s, v in frontiers.get(green.original, {}).items() if frontiers[green.name].get(s, v) < v]
        stale = [s for s, v in frontiers[green.name].items() if s in names and newest[s] != v]
        mixed = [root for root, range_ in own.items() if range_.oldest != range_.newest and public.get(root) != range_]
        together = at_one_cut(own, public) or (alone and not behind(own, public))
        if back or stale or mixed or not together:
            raise _no_common_cut(green.original)
        for root, range_ in own.items():
            if cut.setdefault(root, range_.newest) != range_.newest:
                raise _no_common_cut(green.original)
    return cut


def refuse_followers_apart(followers: Sequence[TableName], reader: Reader, cut: Mapping[TableName, int]) -> None:
    """Refuse an exchange at whose cut those that are published with it do not stand.

    Args:
        followers: What is published with it.
        reader: One state of the catalog.
        cut: The versions of root sources at which they stand.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    roots = RootVersions(reader)
    for name in followers:
        if any(root in cut and cut[root] not in own.only for root, own in roots.of(name).items()):
            raise _no_common_cut(name)


def refuse_cut_apart(cut: Mapping[TableName, int], now: Mapping[TableName, int]) -> None:
    """Refuse a cut that is another one than root sources stand at.

    Args:
        cut: The versions of root sources at which generations stand.
        now: Those at which others are refreshed.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    if other := next((root for root, version in cut.items() if now.get(root) != version), None):
        raise _no_common_cut(other)


def _no_common_cut(name: TableName) -> EnvironmentFault:
    return EnvironmentFault(
        "NO_COMMON_CUT",
        f"The generations of {name} do not stand at one cut, as its sources moved on; nothing was exchanged.",
        hint=f"{AGAIN} Where its group stands still because a query fails, `CREATE OR REPLACE` mends that in place.",
        retryable=True,
    )
