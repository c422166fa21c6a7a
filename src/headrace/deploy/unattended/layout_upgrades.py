"""Makes the deployments that bring new stored layouts, and ends them.

A deployment has one unit: it is loaded, promoted and dropped before much else is stored twice, and one that fails holds
up no other. What was public before has the old layout, which nobody can maintain any more, so it is not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from headrace.catalog import Catalog, Green
from headrace.clock import Clock
from headrace.definitions.compiled_views import CompiledViews
from headrace.deploy.blue_settings import altered
from headrace.deploy.create_green import GreenSpec, create_green
from headrace.deploy.deployment_results import PromotionResult
from headrace.deploy.ending import end
from headrace.deploy.promotion import PATIENCE, Promotion
from headrace.deploy.unattended.deployer import PAUSE
from headrace.deploy.unattended.promotion_conditions import conditions_to_json, parse_conditions
from headrace.error_codes.outages import SURROUNDINGS
from headrace.errors import HeadraceError
from headrace.events import Notice
from headrace.names import TableName
from headrace.ports import Session
from headrace.refresh.definition.create import Creator
from headrace.refresh.definition.layout_waits import is_layout_deployment, is_newer, is_old, waiting_in
from headrace.refresh.groups.grouping import grouping_of
from headrace.refresh.held_leases import holding_leases

CONDITIONS = {"rollback_window": "0 seconds", "keep_fresh": "false"}
"""Options of these promotions: none goes back to a layout that is no longer maintained."""


class LayoutUpgrades:
    """Brings new layouts to stream tables that are too large to be loaded in place.

    Args:
        catalog: The catalog.
        session: The user's session.
        plans: Compiles.
        creator: Creates, loads and drops.
        promotion: Exchanges generations.
        clock: Tells the time.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        plans: CompiledViews,
        creator: Creator,
        promotion: Promotion,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._session = session
        self._plans = plans
        self._creator = creator
        self._promotion = promotion
        self._clock = clock
        self._told: dict[str, str] = {}

    def begin(self, names: Collection[TableName]) -> None:
        """Make the deployments of stream tables that wait, for schedulers to load and promote.

        What keeps one from being made is emitted once, stands in the catalog, and is tried again every minute.

        Args:
            names: The stream tables.

        Raises:
            HeadraceError: What went wrong with the catalog, or with Spark itself.
        """
        self._end_stale()
        waiting = waiting_in(self._catalog, self._creator.refresher.defaults) if names else {}
        for deployment in dict.fromkeys(waiting[name] for name in names if name in waiting):
            if not self._wants_making(deployment, waiting):
                continue
            try:
                with self._alone(deployment):
                    self._make(deployment)
            except HeadraceError as error:
                if error.code in SURROUNDINGS:
                    raise
                if error.code != "LEASE_HELD":
                    self._refused(deployment, error)

    def finish(self, name: TableName, patience: float = 0.0) -> PromotionResult | None:
        """Bring a stream table's new layout now: load it beside, exchange, drop what was.

        Args:
            name: The stream table.
            patience: Seconds to wait for a scheduler that is about to do it.

        Returns:
            The promotion; None where the table does not wait any more.

        Raises:
            HeadraceError: What went wrong; the stream table is what it was, and the next refresh goes on from there.
        """
        self._end_stale()
        waiting = waiting_in(self._catalog, self._creator.refresher.defaults)
        if name not in waiting:
            return None
        with self._alone(waiting[name], patience):
            self._make(waiting[name])
            chosen = self._greens(waiting[name])
            if not chosen:  # whoever was waited for has brought it
                return None
            self._load(chosen, max(patience, PATIENCE))
            done = self._promotion.promote(chosen, parse_conditions(CONDITIONS).options)
        self.end()
        return done

    def end(self) -> None:
        """Drop what was public before; what is in use just now is left to maintenance."""
        now = self._clock.now()
        over = [g for g in self._catalog.greens() if g.keep_until is not None and g.keep_until <= now]
        self._end(g for g in over if is_layout_deployment(g.deployment))

    # ---- steps

    @contextmanager
    def _alone(self, deployment: str, patience: float = 0.0) -> Iterator[None]:
        with holding_leases(self._catalog, [f"deployment {deployment}"], patience=patience):
            yield

    def _make(self, deployment: str) -> None:
        """Make the greens that a deployment lacks, then have schedulers promote it."""
        waiting = waiting_in(self._catalog, self._creator.refresher.defaults)
        there = {green.original for green in self._greens(deployment)}
        members = [name for name, other in waiting.items() if other == deployment and name not in there]
        for name in members:
            create_green(
                GreenSpec(name, deployment, initialize=False, by_itself=True),
                catalog=self._catalog,
                session=self._session,
                plans=self._plans,
                creator=self._creator,
                clock=self._clock,
            )
        armed = any(each.name == deployment for each in self._catalog.auto_deployments())
        if members or (there and not armed):
            self._catalog.set_auto_promote(deployment, conditions_to_json(CONDITIONS))
        self._told.pop(deployment, None)

    def _wants_making(self, deployment: str, waiting: Mapping[TableName, str]) -> bool:
        """Return whether something of a deployment is missing, and was not tried a moment ago."""
        armed = next((d for d in self._catalog.auto_deployments() if d.name == deployment), None)
        there = {green.original for green in self._greens(deployment)}
        if armed is not None and all(name in there for name, other in waiting.items() if other == deployment):
            return False
        return armed is None or armed.tried_at is None or self._clock.now() - armed.tried_at >= PAUSE

    def _load(self, chosen: Collection[Green], patience: float) -> None:
        heads = self._creator.refresher.heads()
        grouping = grouping_of(self._catalog, self._creator.refresher.defaults)
        for unit in grouping.units.dag.order({grouping.units.unit_of[green.name] for green in chosen}):
            self._creator.refresh_group(grouping.units.members[unit], heads, patience=patience)

    def _refused(self, deployment: str, error: HeadraceError) -> None:
        self._catalog.set_auto_promote(deployment, conditions_to_json(CONDITIONS))
        self._catalog.note_refusal(deployment, error.code, error.message)
        if self._told.get(deployment) != error.code:
            self._creator.refresher.events.emit(
                Notice(f"Deployment {deployment} cannot be made for now. [{error.code}] {error.message}")
            )
        self._told[deployment] = error.code

    def _greens(self, deployment: str) -> list[Green]:
        return [g for g in self._catalog.greens() if g.deployment == deployment and g.promoted_at is None]

    def _end_stale(self) -> None:
        """Drop greens whose public table was altered, or loaded in place, after all."""
        tables = {t.name: t for t in self._catalog.stream_tables()}
        greens = [g for g in self._catalog.greens() if is_layout_deployment(g.deployment) and g.promoted_at is None]
        newer = {g.deployment for g in greens if is_newer(tables[g.name])}  # what they bring is news to this version
        greens = [g for g in greens if g.deployment not in newer]
        old = {g.deployment for g in greens if is_old(tables[g.original])}
        stale = {g.deployment for g in greens if g.deployment not in old or altered(g.blue, tables[g.original])}
        self._end(g for g in greens if g.deployment in stale)

    def _end(self, members: Iterator[Green]) -> None:
        together: dict[str, list[Green]] = {}
        for green in members:
            together.setdefault(green.deployment, []).append(green)
        for chosen in together.values():
            with suppress(HeadraceError):  # LEASE_HELD, or somebody else was faster
                end(chosen, self._catalog, self._creator)
