"""Renders what schedulers do: plans, groups, events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.cli.render import format as fmt
from headrace.observability.event_words import logged_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.api.schedules.event_log import LoggedEvent
    from headrace.api.schedules.groups import DiamondGroup
    from headrace.scheduler.work import Planned


def planned(units: Sequence[Planned]) -> Iterator[RenderableType]:
    """Render what would be refreshed now, in order, and what waits."""
    if not units:
        yield "Nothing is due."
        return
    table = fmt.grid("", "Stream tables", "Why", ("Takes", "right"))
    for number, unit in enumerate(units, 1):
        place = "waits" if unit.waits else str(number)
        table.add_row(place, ", ".join(unit.tables), unit.why, fmt.seconds(unit.seconds))
    yield table


def groups(found: Sequence[DiamondGroup]) -> Iterator[RenderableType]:
    """Yield the groups there are."""
    if not found:
        yield "No stream tables have to be published together."
        return
    table = fmt.grid("Group", "Members", "Converge at", "Policy", ("Epoch", "right"), ("Publication", "right"), "Waits")
    for group in found:
        table.add_row(
            group.name,
            ", ".join(group.members),
            _why(group),
            group.policy,
            str(group.epoch),
            str(group.last_publication or fmt.NOTHING),
            group.waits_for or "",
        )
    yield table


def _why(group: DiamondGroup) -> str:
    """Return why tables are published together: diamonds, declared groups, cycles."""
    declared = f"declared as {', '.join(group.declared)}" if group.declared else ""
    cycle = f"cycle of {' ⇄ '.join(group.cyclic)}" if group.cyclic else ""
    return "; ".join(filter(None, (", ".join(group.converge), declared, cycle)))


def event_line(event: LoggedEvent) -> str:
    """Return an event as a line: when, what happened, and what it is about, in words."""
    return f"{fmt.moment(event.at)}  {event.event:<{KIND_WIDTH}}  {logged_words(event.event, event.fields)}".rstrip()


KIND_WIDTH = 18
"""As long as most kinds of events, so that what follows stands in a column."""
