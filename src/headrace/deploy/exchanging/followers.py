"""Tells which stream tables have to follow an exchange in its own publication. Pure.

Members of a group are always published at one cut. Where a deployment exchanges some of them only, those that read
these would show what they were computed from before, until their next refresh. So they are refreshed over what the
others become, and published with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog import Green, Role, Status, StreamTable
from headrace.definitions.details import from_json, in_generation, to_json
from headrace.deploy.deployment_state import DeploymentState
from headrace.errors import HeadraceError, UserError
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, Grouping, grouping
from headrace.refresh.groups.load_plan import held_up


@dataclass(frozen=True, slots=True)
class Followers:
    """Members of groups that are published with an exchange of others.

    Args:
        names: The stream tables, producers first.
        groups: Their groups, each by all its members, producers first.
        behind: Members of these that are refreshed by nobody, and what reads them.
    """

    names: tuple[TableName, ...] = ()
    groups: tuple[tuple[TableName, ...], ...] = ()
    behind: frozenset[TableName] = frozenset()


NONE_FOLLOW = Followers()


def public_after(chosen: Sequence[Green], tables: Mapping[TableName, StreamTable]) -> dict[TableName, StreamTable]:
    """Return the stream tables as they are after an exchange, without the second generations.

    Args:
        chosen: The members that are exchanged.
        tables: All stream tables.
    """
    after = {name: table for name, table in tables.items() if name not in {g.name for g in chosen}}
    for green in chosen:
        if not green.public:
            after[green.original] = _as_public(green.original, tables[green.name])
    return after


def followers_in(
    state: DeploymentState,
    chosen: Sequence[Green],
    defaults: Defaults,
    *,
    stopping: Collection[str] = (),
    changed: Collection[TableName] | None = None,
    whole: bool = False,
) -> Followers:
    """Return what has to follow an exchange, as the catalog is at one moment.

    Args:
        state: The catalog.
        chosen: The second generations.
        defaults: What the project wants of diamonds.
        stopping: Readers that stop with it.
        changed: The public tables whose rows change; None where only definitions can tell.
        whole: As for `followers_of`; then also those follow whose last refresh failed, as groups fail together.

    Raises:
        UserError: `GROUP_TORN`.
    """
    tables, scheduling = state.tables, state.scheduling
    after = grouping(public_after(chosen, tables), defaults, state.reader.sources())
    if whole:
        scheduling = {n: replace(own, suspended_at=None, retry_at=None) for n, own in scheduling.items()}
    left_alone = {*held_up(tables, scheduling), *(n for n in tables if str(n) in stopping)}
    left_alone |= {name for name, table in tables.items() if table.status is Status.NEW}
    followers = followers_of(after, chosen, left_alone, whole=whole)
    refuse_between(followers, after, chosen, redefined(chosen, tables) if changed is None else changed)
    return followers


def followers_of(
    after: Grouping, chosen: Sequence[Green], left_alone: Collection[TableName] = (), *, whole: bool = False
) -> Followers:
    """Return what has to follow an exchange.

    Args:
        after: The units after it.
        chosen: The members that are exchanged.
        left_alone: Stream tables that are refreshed by nobody, such as paused ones; what reads them stays behind, too.
        whole: Have all members of the groups follow, as these stand still without the exchange; but for groups where
            one that is exchanged reads another that is not.
    """
    moved = {g.original for g in chosen if g.role is Role.EXCHANGE}
    arrived = {g.original for g in chosen if not g.public}
    names: set[TableName] = set()
    behind: set[TableName] = set()
    groups = []
    for unit in dict.fromkeys(after.units.unit_of[name] for name in sorted(moved)):
        members = after.units.members[unit]
        stay = [name for name in members if name in left_alone and name not in arrived]
        stay += [name for name in after.graph.downstream(*stay) if name not in arrived]
        below = after.graph.downstream(*moved.intersection(members))
        others = [name for name in members if name not in below and name not in arrived]
        if whole and arrived.isdisjoint(after.graph.downstream(*others)):
            below = members
        behind.update(stay)
        follow = [name for name in below if name in members and name not in stay and name not in arrived]
        if follow:
            names.update(follow)
            groups.append(members)
    return Followers(after.graph.order(names), tuple(groups), frozenset(behind))


def redefined(chosen: Sequence[Green], tables: Mapping[TableName, StreamTable]) -> frozenset[TableName]:
    """Return the public tables that receive another definition, and so other rows.

    Whose rows change indeed is known when they are written.
    """

    def meant(table: StreamTable) -> tuple[object, ...]:
        refinements = table.details.get("refinements", [])
        return table.query, refinements, table.details.get("namespace"), table.details.get("semantics")

    exchanged = [g for g in chosen if g.role is Role.EXCHANGE]
    return frozenset(g.original for g in exchanged if meant(tables[g.name]) != meant(tables[g.original]))


def refuse_between(
    followers: Followers, after: Grouping, chosen: Sequence[Green], changed: Collection[TableName]
) -> None:
    """Refuse an exchange that leaves out what lies between two of its members.

    Args:
        followers: What has to follow it.
        after: The units after it.
        chosen: The members that are exchanged.
        changed: The public tables whose rows change.

    Raises:
        UserError: `GROUP_TORN`.
    """
    arrived = {g.original for g in chosen if not g.public}
    for name in (name for name in after.graph.downstream(*changed) if name in followers.names):
        together = after.members(name)
        if below := [reader for reader in after.graph.downstream(name) if reader in arrived and reader in together]:
            raise UserError(
                "GROUP_TORN",
                f"{below[0]} is computed from {name} and published together with it; that changes with what the "
                "deployment exchanges, but is no part of it. Nothing was changed.",
                hint=f"Make it part: `headrace deploy create {name} --deployment {chosen[0].deployment}`.",
            )


def cannot_follow(followers: Followers, error: HeadraceError) -> HeadraceError:
    """Return the error for an exchange that others of a group cannot follow."""
    names = ", ".join(map(str, followers.names))
    return UserError(
        "GROUP_CANNOT_FOLLOW",
        f"{names} would be published together with what the deployment exchanges, and cannot be brought to that: "
        f"[{error.code}] {error.message} Nothing was changed.",
        hint=f"Mend it, pause it, or make it part of the deployment: `headrace deploy create {followers.names[0]}`.",
    )


def _as_public(name: TableName, table: StreamTable) -> StreamTable:
    details = in_generation(from_json(table.details), "", {})
    return replace(table, name=name, sources=tuple(use.name for use in details.sources), details=to_json(details))
