"""Groups of stream tables that are refreshed and published together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.catalog import Catalog, GroupEpoch
from headrace.errors import UserError
from headrace.results.refresh_results import Record
from headrace.scheduler.policy.plan_cycle import Hold, holds, not_due_yet
from headrace.scheduler.scheduler_state import SchedulerState

if TYPE_CHECKING:
    from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class DiamondGroup(Record):
    """Stream tables that are refreshed and published together.

    Args:
        name: The group, called after its last member.
        members: Its stream tables, in the order they are refreshed.
        converge: Those at which diamonds meet.
        policy: `fastest` or `slowest`.
        epoch: Counts its publications; it grows for ever, whoever joins and leaves.
        last_publication: The number of the last one, which `hr.at()` takes; None before the first.
        waits_for: What holds the group up, with the reason: a member, something that a member reads, or members that
            are not due yet where all must be; None for nothing.
        declared: The refresh groups that users declared among them.
        cyclic: Those that read each other in a circle.
    """

    name: str
    members: tuple[str, ...]
    converge: tuple[str, ...]
    policy: str
    epoch: int
    last_publication: int | None
    waits_for: str | None
    declared: tuple[str, ...] = ()
    cyclic: tuple[str, ...] = ()


def diamond_groups(catalog: Catalog, state: SchedulerState, now: dt.datetime) -> tuple[DiamondGroup, ...]:
    """Return the groups there are; see `Headrace.diamond_groups`."""
    epochs, held, grouping = catalog.epochs(), holds(state, now), state.grouping
    found = []
    for unit in grouping.units.dag.order():
        name, members = grouping.group(unit), grouping.units.members[unit]
        if name is None:
            continue
        epoch = latest(epochs, members)
        found.append(
            DiamondGroup(
                name=name,
                members=tuple(str(m) for m in members),
                converge=tuple(str(b) for b in grouping.bottoms(unit)),
                policy=grouping.policy(unit).value,
                epoch=epoch.epoch if epoch else 0,
                last_publication=epoch.publication.id if epoch else None,
                waits_for=_waits_for(state, unit, held.get(unit), now),
                declared=grouping.declared(unit),
                cyclic=tuple(str(m) for m in members if grouping.graph.component(m)),
            )
        )
    return tuple(found)


def latest(epochs: Mapping[TableName, GroupEpoch], members: Iterable[TableName]) -> GroupEpoch | None:
    """Return the last publication of a group, from what its members know; None before the first."""
    return max((epochs[m] for m in members if m in epochs), key=lambda one: one.epoch, default=None)


def _waits_for(state: SchedulerState, unit: TableName, hold: Hold | None, now: dt.datetime) -> str | None:
    if hold is not None:
        return f"{hold.table} is {hold.reason}"
    late = not_due_yet(state, unit, now)
    return f"{', '.join(map(str, late))}, not due yet" if late else None


def declare_group(catalog: Catalog, name: str, members: Sequence[TableName]) -> None:
    """Declare a refresh group; see `Headrace.create_refresh_group`."""
    tables = {t.name: t for t in catalog.stream_tables()}
    if any(t.options.get("refresh_group") == name for t in tables.values()):
        raise UserError(
            "GROUP_EXISTS", f"There is a refresh group {name} already.", hint=f"DROP REFRESH GROUP {name} first."
        )
    for member in members:
        other = catalog.stream_table(member).options.get("refresh_group")
        if other:
            raise UserError(
                "GROUP_MEMBER_TAKEN",
                f"{member} is in refresh group {other} already.",
                hint=f"DROP REFRESH GROUP {other} first, or declare one group of all of them.",
            )
    for member in members:
        catalog.alter_stream_table(member, options={**tables[member].options, "refresh_group": name})


def drop_group(catalog: Catalog, name: str, *, if_exists: bool) -> tuple[TableName, ...]:
    """Drop a refresh group; see `Headrace.drop_refresh_group`."""
    members = [t for t in catalog.stream_tables() if t.options.get("refresh_group") == name]
    if not members and not if_exists:
        raise UserError(
            "GROUP_NOT_FOUND", f"There is no refresh group {name}.", hint="`headrace diamonds` shows groups."
        )
    for table in members:
        kept = {key: value for key, value in table.options.items() if key != "refresh_group"}
        catalog.alter_stream_table(table.name, options=kept)
    return tuple(table.name for table in members)
