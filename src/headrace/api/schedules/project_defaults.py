"""Reads a project's defaults for groups, fuses, cycles and slots from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.catalog import Catalog
from headrace.config import MOST_CONCURRENT, Settings
from headrace.errors import UserError
from headrace.refresh.fuses.fuse import Fuse
from headrace.refresh.groups.grouping import Defaults
from headrace.schedule import parse_schedule
from headrace.schedule.options import DEPLOY_POOL, Consistency, Policy, parse_ceiling, parse_factor
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


def slots_of(settings: Settings, max_concurrent: int | None) -> int:
    """Return how many refreshes run at once.

    Args:
        settings: The project's.
        max_concurrent: What was asked for; None for what the settings say.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    slots = settings.max_concurrent_refreshes if max_concurrent is None else max_concurrent
    if not 1 <= slots <= MOST_CONCURRENT:
        raise UserError(
            "INVALID_OPTION", f"{slots} refreshes at once are not possible.", hint=f"Use 1 to {MOST_CONCURRENT}."
        )
    return slots


def quotas_of(settings: Settings) -> Mapping[str, int]:
    """Return how many refreshes of a pool run at once, by pool.

    A pool that is missing has no limit of its own.
    """
    return {**settings.pools, DEPLOY_POOL: settings.deploy_slots}


def scheduler_state_of(settings: Settings, catalog: Catalog, heads: Cut) -> SchedulerState:
    """Read the state schedulers decide from; unreadable sources count as not moved."""
    default = parse_schedule(settings.default_schedule)
    return read_scheduler_state(catalog, heads, defaults_of(settings), default, lambda *_: None)
