"""Refreshes one stream table or a group: gather, choose, run, publish, or put back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.catalog import Catalog
from headrace.clock import Clock, SystemClock
from headrace.definitions.compiled_views import CompiledViews
from headrace.events import Events
from headrace.names import TableName
from headrace.physical.shared_changes import SharedChanges
from headrace.ports import Session
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.observe import Observation
from headrace.refresh.groups.cycle_refresher import CycleRefresher
from headrace.refresh.groups.group_refresh import GroupRefresh, Order
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.preparation import Preparation
from headrace.refresh.publication_builder import Finished
from headrace.refresh.publishing import Publishing
from headrace.statistics.session_statistics import SessionStatistics


class Refresher:
    """Refreshes stream tables of one catalog.

    Args:
        catalog: The catalog.
        session: Gives the runner.
        plans: Compiled views.
        events: Told what happens.
        clock: Tells the time.
        defaults: What the project wants where a stream table says nothing.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: Session,
        plans: CompiledViews,
        events: Events,
        clock: Clock | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans
        self.events = events
        self.clock = clock or SystemClock()
        self.defaults = defaults or Defaults()
        self.changes = SharedChanges()
        self._observation = Observation(catalog, self.defaults)
        self._publishing = Publishing(catalog, events, self.clock)
        self.statistics = statistics = SessionStatistics(plans.memory)
        self._preparation = Preparation(
            catalog,
            session,
            plans,
            events,
            self.clock,
            self.defaults,
            self.changes,
            statistics,
            self._observation,
        )
        self._cycles = CycleRefresher(
            catalog, session, plans, events, self.clock, self.defaults, self.changes, statistics
        )

    @contextmanager
    def recording(self) -> Iterator[Mapping[TableName, Finished]]:
        """Give the refreshes that are published while the block lasts, as they were planned and run."""
        with self._publishing.recording() as found:
            yield found

    def heads(self, tick: float = 1e-6) -> Cut:
        """Return a new cut.

        Args:
            tick: As of `Cut`.
        """
        return Cut(self.catalog, self.session.location, tick)

    def together(self, order: Order) -> GroupRefresh:
        """Return a refresh that moves stream tables to the cut, all or none of them.

        Args:
            order: The stream tables, and how.
        """
        return GroupRefresh(self.catalog, self._preparation, self._cycles, self._publishing, self._observation, order)
