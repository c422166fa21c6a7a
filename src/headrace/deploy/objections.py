"""Says what stands against an exchange of generations, as far as the catalog alone can tell.

Promotions and roll-backs are refused for the first objection, dry runs and schedulers with them, and `green_status`
shows all of them: asked at one place, so that they say the same.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.catalog import Green, Role, SchedulingState, Status, StreamTable
from headrace.definitions.details import from_json
from headrace.deploy.deployment_results import BrokenReader
from headrace.deploy.deployment_state import DeploymentState
from headrace.deploy.exchanging.column_changes import broken_readers
from headrace.deploy.exchanging.followers import followers_in
from headrace.deploy.generation_names import promoted_name, taken_back_name
from headrace.deploy.promotion_options import PromotionOptions
from headrace.deploy.readiness import (
    left_readers,
    refuse_altered,
    refuse_changed,
    refuse_existing,
    refuse_left_behind,
    refuse_torn,
)
from headrace.deploy.root_versions import behind, behind_seconds, within_threshold
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults

READERS_BROKEN = "READERS_BROKEN"
_TRIED = re.compile(r"[;.,]? nothing was \w+\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason to refuse an exchange.

    Args:
        error: What it is refused with.
        tables: The public names of the members that it is about.
    """

    error: HeadraceError
    tables: frozenset[TableName]

    @property
    def words(self) -> str:
        """Return code and message, as of something that nobody has tried."""
        return f"{self.error.code}: {_TRIED.sub('', self.error.message)}"


def against_promotion(
    chosen: Sequence[Green], state: DeploymentState, now: dt.datetime, how: PromotionOptions, defaults: Defaults
) -> Iterator[Objection]:
    """Yield what stands against a promotion, in the order in which it is refused for it.

    Args:
        chosen: The greens, producers first.
        state: The catalog.
        now: The time.
        how: What was asked for.
        defaults: What the project wants of diamonds.
    """
    if changed := [*_of_all(chosen, lambda: refuse_changed(chosen, state.greens))]:
        yield from changed  # of what was dropped nothing else can be told
        return
    yield from _of_all(chosen, lambda: _refuse_alone(chosen, state))
    for green in chosen:
        yield from _of_one(green, lambda g=green: refuse_altered(g, state.tables))  # type: ignore[misc]
        if green.role is not Role.DROP and (error := _unready(green, state, now, how.lag_threshold)) is not None:
            yield Objection(error, frozenset({green.original}))
    yield from _taken(chosen, [promoted_name(g) for g in chosen], state)
    broken = broken_in(chosen, state)
    stopping = {b.reader for b in broken}
    yield from _of_all(chosen, lambda: followers_in(state, chosen, defaults, stopping=stopping))
    yield from _broken(chosen, [b for b in broken if b.column is None or not how.force])


def against_roll_back(chosen: Sequence[Green], state: DeploymentState, now: dt.datetime) -> Iterator[Objection]:
    """Yield what stands against a roll-back, in the order in which it is refused for it.

    Args:
        chosen: The former generations, producers first.
        state: The catalog.
        now: The time.
    """
    if changed := [*_of_all(chosen, lambda: refuse_changed(chosen, state.greens))]:
        yield from changed
        return
    for green in chosen:
        yield from _of_one(green, lambda g=green: _refuse_late(g, now))  # type: ignore[misc]
    yield from _of_all(chosen, lambda: _refuse_alone(chosen, state))
    for green in chosen:
        yield from _of_one(green, lambda g=green: refuse_altered(g, state.tables))  # type: ignore[misc]
    yield from _taken(chosen, [taken_back_name(g) for g in chosen], state)
    yield from _broken(chosen, broken_in(chosen, state))


def refuse(objections: Iterator[Objection]) -> None:
    """Raise the first of some objections; nothing where there is none."""
    for first in objections:
        raise first.error


def broken_in(chosen: Sequence[Green], state: DeploymentState) -> tuple[BrokenReader, ...]:
    """Return columns, or whole tables, that readers outside would miss after an exchange."""
    exchanged = [g for g in chosen if g.role is Role.EXCHANGE]
    after = {g.original: from_json(state.tables[g.name].details).output for g in exchanged}
    return left_readers(chosen, state.reads) + broken_readers(state.tables, after, {g.original for g in chosen})


# ---- steps


def _refuse_alone(chosen: Sequence[Green], state: DeploymentState) -> None:
    refuse_torn(chosen, state.greens, state.reads)
    refuse_left_behind(chosen, state.tables, state.reads)


def _of_one(green: Green, check: Callable[[], object]) -> Iterator[Objection]:
    return _of_all([green], check)


def _of_all(chosen: Sequence[Green], check: Callable[[], object]) -> Iterator[Objection]:
    """Yield what a check raises."""
    try:
        check()
    except HeadraceError as error:
        yield Objection(error, frozenset(g.original for g in chosen))


def _taken(chosen: Sequence[Green], names: Sequence[TableName], state: DeploymentState) -> Iterator[Objection]:
    there = {g.name for g in chosen}
    for green, name in zip(chosen, names, strict=True):
        if name not in there:
            yield from _of_one(green, lambda n=name: refuse_existing([n], state.reader))  # type: ignore[misc]


def _broken(chosen: Sequence[Green], broken: Sequence[BrokenReader]) -> Iterator[Objection]:
    if broken:
        sources = {b.source for b in broken}
        yield Objection(_readers_broken(broken), frozenset(g.original for g in chosen if str(g.original) in sources))


def _unready(
    green: Green, state: DeploymentState, now: dt.datetime, lag_threshold: dt.timedelta
) -> HeadraceError | None:
    """Return why a green is not to be promoted yet: it failed, is not loaded, or is behind."""
    known = state.scheduling.get(green.name, SchedulingState())
    if (trouble := _trouble(state.tables[green.name], known)) is not None:
        return trouble
    if not state.is_loaded(green.name):
        return EnvironmentFault(
            "GREEN_LOADING",
            f"{green.name} has not been loaded yet; nothing was promoted.",
            hint=f"Wait for the scheduler, or run `headrace refresh {green.name}`.",
            retryable=True,
        )
    own = state.roots.of(green.name)
    late = behind(own, state.roots.of(green.original))
    seconds = behind_seconds(state.reader, own, late, now)
    if within_threshold(late, seconds, lag_threshold.total_seconds()):
        return None
    listed = ", ".join(f"{number} version(s) of {root}" for root, number in sorted(late.items()))
    return EnvironmentFault(
        "GREEN_BEHIND",
        f"{green.name} is behind {green.original} by {listed}; nothing was promoted.",
        hint=f"Wait for the scheduler, or run `headrace refresh {green.name}`.",
        retryable=True,
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


def _refuse_late(green: Green, now: dt.datetime) -> None:
    if green.promoted_at is None or green.keep_until is None:
        raise UserError(
            "NOT_PROMOTED",
            f"{green.name} was not promoted, so nothing can be taken back.",
            hint=f"`headrace deploy cancel {green.original}` ends the deployment.",
        )
    if now > green.keep_until:
        raise UserError(
            "ROLLBACK_EXPIRED",
            f"The promotion of {green.original} could be taken back until {green.keep_until:%Y-%m-%d %H:%M:%S} UTC.",
            hint="Give it its former definition: `headrace deploy create`, then promote that.",
        )


def _readers_broken(broken: Sequence[BrokenReader]) -> UserError:
    listed = "; ".join(f"{b.reader}: {b.missed} {b.what}" for b in broken)
    whole = any(b.column is None for b in broken)
    return UserError(
        READERS_BROKEN,
        f"Stream tables that remain would miss what they read: {listed}. Nothing was changed.",
        hint="Have them read something else, drop them, or make that part of the deployment (`headrace deploy create`, "
        "`headrace deploy drop`)."
        if whole
        else "Make them part of the deployment, keep the columns, or have these readers stopped with --force.",
    )
