"""What a project wants of groups, fuses and cycles, from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.catalog import Catalog
from headrace.config import Settings
from headrace.refresh.fuses.fuse import Fuse
from headrace.refresh.groups.grouping import Defaults
from headrace.schedule import parse_schedule
from headrace.schedule.options import Consistency, Policy, parse_ceiling, parse_factor
from headrace.scheduler.scheduler_state import SchedulerState, read_scheduler_state

if TYPE_CHECKING:
    from headrace.refresh.cut.cut import Cut


def defaults_of(settings: Settings) -> Defaults:
    """Return the project's defaults for diamonds, fuses and lags."""
    fuse = Fuse(parse_ceiling(settings.fuse_ceiling), parse_factor(settings.fuse_factor))
    return Defaults(
        Consistency(settings.diamond_consistency),
        Policy(settings.diamond_schedule_policy),
        fuse,
        settings.allow_cycles,
        settings.max_cycle_rounds,
        settings.layout_limit,
    )


def scheduler_state_of(settings: Settings, catalog: Catalog, heads: Cut) -> SchedulerState:
    """Read the state schedulers decide from; unreadable sources count as not moved."""
    default = parse_schedule(settings.default_schedule)
    return read_scheduler_state(catalog, heads, defaults_of(settings), default, lambda *_: None)
