"""Promotes deployments whose conditions hold; rolls back watched ones that fail.

Any number of schedulers may ask at once: a lease lets one at a time see to a deployment. What is remembered between
two looks is in the catalog, so that a restart tells nothing twice.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from headrace.catalog import AutoDeployment, Catalog, Green
from headrace.clock import Clock
from headrace.deploy.deployment_results import PromotionResult
from headrace.deploy.green_status import green_infos
from headrace.deploy.promotion_options import ROLLBACK, PromotionOptions
from headrace.deploy.unattended.promotion_conditions import PromotionConditions, parse_conditions, texts_of
from headrace.deploy.unattended.watch import Watch, trouble, watch_from_json
from headrace.error_codes.outages import SURROUNDINGS
from headrace.error_codes.sections.deployments import MEANWHILE
from headrace.errors import HeadraceError, UserError
from headrace.events import Event, Promoted, PromotionRefused, RolledBack, WatchFailed, fields_of, kind_of
from headrace.names import TableName
from headrace.refresh.held_leases import holding_leases

PAUSE = dt.timedelta(minutes=1)
"""A deployment that was refused is tried again after that, as somebody may have mended it."""

PASSING = frozenset({code.code for code in MEANWHILE} | {"LEASE_HELD", "LEASE_LOST"})
"""Refusals that a moment's patience helps."""

PAUSE_PASSING = dt.timedelta(seconds=5)
"""Likewise where a retry may help."""

READY = ("converged", "blocked")
"""States in which a promotion is tried; what blocks one is noted as its refusal."""

CHECK_EVERY = dt.timedelta(seconds=60)
"""Checks of a watch run when the tables have other contents, and no more often."""


class Promoting(Protocol):
    """Exchanges generations; `headrace.deploy.promotion.Promotion` does."""

    def promote(self, chosen: Sequence[Green], how: PromotionOptions) -> PromotionResult:
        """Put greens in the place of the public stream tables."""
        ...

    def roll_back(self, chosen: Sequence[Green], why: str = "") -> PromotionResult:
        """Put former generations back."""
        ...


class Deployer:
    """Sees to deployments that nobody attends.

    Args:
        catalog: The catalog.
        promotion: Exchanges generations.
        failing: Runs checks over public tables; returns in words which fails, None for none.
        clock: Tells the time.

    Attributes:
        exchanging: Whether it promotes, or takes back, just now.
    """

    def __init__(
        self,
        catalog: Catalog,
        promotion: Promoting,
        failing: Callable[[Mapping[str, str]], str | None],
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._promotion = promotion
        self._failing = failing
        self._clock = clock
        self.exchanging = False
        self._checked: dict[TableName, tuple[dt.datetime, list[object]]] = {}
        self._refused_back: dict[tuple[str, dt.datetime], dt.datetime] = {}

    def step(self) -> None:
        """Promote and take back what is due.

        Raises:
            HeadraceError: What went wrong with the catalog, or with Spark itself.
        """
        for armed in self._catalog.auto_deployments():
            if self._due(armed.name) is not None:
                self._alone(armed.name, partial(self._promote, armed.name))
        for (deployment, promoted_at), greens in _watched(self._catalog.greens()).items():
            watch, now = watch_from_json(greens[0].watch or {}), self._clock.now()
            refused = self._refused_back.get((deployment, promoted_at))
            if refused is not None and now < min(refused + PAUSE, watch.until):
                continue
            if now >= watch.until or self._trouble(greens, watch) or self._checks_due(greens, watch, now):
                self._alone(deployment, partial(self._see_to, deployment, promoted_at, greens))

    def _alone(self, deployment: str, work: Callable[[], None]) -> None:
        """Run work on a deployment unless another scheduler is at it."""
        try:
            with holding_leases(self._catalog, [f"deployment {deployment}"]):
                work()
        except HeadraceError as error:
            if error.code != "LEASE_HELD":
                raise

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Say so while generations are exchanged."""
        self.exchanging = True
        try:
            yield
        finally:
            self.exchanging = False

    # ---- promotion

    def _promote(self, name: str) -> None:
        """Promote a deployment if it still is due, now that nobody else is at it."""
        if (due := self._due(name)) is None:
            return
        armed, chosen, conditions = due
        if conditions.window.is_over(self._clock.now()):
            self._refused(armed, _window_over(name, conditions))
            self._catalog.set_auto_promote(name, None)
            return
        try:
            with self._exchange():
                done = self._promotion.promote(chosen, conditions.options)
        except HeadraceError as error:
            if error.code in SURROUNDINGS:
                raise
            self._refused(armed, error)
            return
        self._tell(Promoted(name, tuple(table.name for table in done.tables), automatic=True))

    def _due(self, name: str) -> tuple[AutoDeployment, list[Green], PromotionConditions] | None:
        """Return a deployment that is to be promoted now, or whose window is over."""
        armed = next((d for d in self._catalog.auto_deployments() if d.name == name), None)
        chosen = [g for g in self._catalog.greens() if g.deployment == name and g.promoted_at is None]
        if armed is None or not chosen:
            return None
        now, conditions = self._clock.now(), parse_conditions(texts_of(armed.conditions))
        if not conditions.window.is_over(now):
            if not conditions.window.is_open(now) or self._too_soon(armed, now):
                return None
            infos = green_infos(self._catalog, chosen, now, conditions.options.lag_threshold)
            if not all(info.state in READY for info in infos):
                return None
        return armed, chosen, conditions

    def _too_soon(self, armed: AutoDeployment, now: dt.datetime) -> bool:
        if armed.tried_at is None:
            return False
        return now - armed.tried_at < (PAUSE_PASSING if armed.refused_code in PASSING else PAUSE)

    def _refused(self, armed: AutoDeployment, error: HeadraceError) -> None:
        """Record a refusal; emit it unless it may pass, or is the same as before."""
        same = armed.refused_code == error.code and _shape(armed.refused_reason or "") == _shape(error.message)
        if not (error.retryable or same):
            self._tell(PromotionRefused(armed.name, error.code, error.message))
        self._catalog.note_refusal(armed.name, error.code, error.message)

    # ---- watches

    def _see_to(self, name: str, promoted_at: dt.datetime, chosen: Sequence[Green]) -> None:
        """End a watch that is over, or take back what it was over, now that nobody else is at it."""
        there = self._catalog.greens()
        if any(green not in there for green in chosen):  # somebody else was faster
            return
        now, watch = self._clock.now(), watch_from_json(chosen[0].watch or {})
        why = self._trouble(chosen, watch) or self._failing_check(chosen, watch, now)
        if now >= watch.until:
            self._refused_back.pop((name, promoted_at), None)
        if why is None:
            if now >= watch.until:
                self._catalog.end_watch(name, promoted_at)
            return
        tables = tuple(str(green.original) for green in chosen)
        if watch.on_trouble != ROLLBACK:
            self._catalog.end_watch(name, promoted_at)
            self._tell(WatchFailed(name, tables, why))
            return
        try:
            with self._exchange():
                done = self._promotion.roll_back(chosen, why)
        except HeadraceError as error:
            if error.code in SURROUNDINGS:
                raise
            if error.retryable and now < watch.until:
                self._refused_back[name, promoted_at] = now
                return
            self._catalog.end_watch(name, promoted_at)
            self._tell(WatchFailed(name, tables, why, f"{error.code}: {error.message}"))
            return
        self._tell(RolledBack(name, tuple(table.name for table in done.tables), why))

    def _trouble(self, chosen: Sequence[Green], watch: Watch) -> str | None:
        names = [green.original for green in chosen]
        scheduling = self._catalog.scheduling_states()
        with self._catalog.reading() as reader:
            tables = {t.name: t for t in reader.stream_tables()}
            return trouble(names, tables, scheduling, reader, watch.until)

    def _checks_due(self, chosen: Sequence[Green], watch: Watch, now: dt.datetime) -> bool:
        last = self._checked.get(chosen[0].name)
        return bool(watch.checks) and (
            last is None or (now - last[0] >= CHECK_EVERY and last[1] != self._contents(chosen))
        )

    def _failing_check(self, chosen: Sequence[Green], watch: Watch, now: dt.datetime) -> str | None:
        if not self._checks_due(chosen, watch, now):
            return None
        contents = self._contents(chosen)
        why = self._failing(watch.checks)
        if why is None:
            self._checked[chosen[0].name] = (now, contents)
        return why

    def _contents(self, chosen: Sequence[Green]) -> list[object]:
        """Return what differs when a public table has other rows, or is promoted anew."""
        newest = self._catalog.newest_versions()
        return [(g.original, g.promoted_at, newest[g.original].version) for g in chosen if g.original in newest]

    def _tell(self, event: Event) -> None:
        """Write an event to the log, from which one scheduler reads it out."""
        with suppress(HeadraceError):
            self._catalog.write_events([(self._clock.now(), kind_of(event), fields_of(event))])


def _watched(greens: Iterable[Green]) -> dict[tuple[str, dt.datetime], list[Green]]:
    """Return former generations whose public tables are watched, by what was promoted together."""
    found: dict[tuple[str, dt.datetime], list[Green]] = {}
    for green in greens:
        if green.watch is not None and green.promoted_at is not None:
            found.setdefault((green.deployment, green.promoted_at), []).append(green)
    return found


def _window_over(name: str, conditions: PromotionConditions) -> UserError:
    return UserError(
        "PROMOTION_WINDOW_OVER",
        f"Deployment {name} was to be promoted until {conditions.window.ends:%Y-%m-%d %H:%M:%S} UTC, and was not; "
        "it does not promote itself any more.",
        hint=f"`headrace deploy status` says what it lacked; `headrace deploy auto {name}` sets new conditions.",
    )


def _shape(message: str) -> str:
    """Return a message without its numbers, which differ each time."""
    return re.sub(r"\d+", "", message)
