"""One scheduler among those of a project: its registration, signs of life and share.

Each sign of life says what the scheduler runs, and finds who else runs, so that shares follow who comes and goes.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from headrace.catalog import Catalog, SchedulerRecord
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Events, Notice
from headrace.refresh.held_leases import is_out_of_sight, owner_is_dead
from headrace.scheduler.policy.slot_shares import Portion, Rank, Slots, portion

TTL = dt.timedelta(seconds=30)
"""A scheduler that is silent for so long is taken for dead."""

BEAT_SECONDS = 5.0
"""Time between two signs of life; several fit into the time after which a scheduler is taken for dead."""

_WAITS = (
    "A scheduler was registered by a process of this host that cannot be seen from here, such as that of a container"
    f" before its restart. If it gives no sign of life for {TTL.total_seconds():.0f} seconds, this one takes its place."
)


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a sign of life.

    Args:
        room: What may run for now; None where the scheduler was taken for dead, and is registered no more.
        moved: Whether its share, or its place among the others, is another one.
        leads: Whether it began before all others.
        draining: Whether it must start nothing more, and end.
    """

    room: Slots | None = None
    moved: bool = False
    leads: bool = False
    draining: bool = False


class Membership:
    """Registers one scheduler, and keeps the others informed that it lives and what it claims.

    Args:
        catalog: Where schedulers are registered.
        owner: Which one it is.
        total: What all schedulers may run together.
        poll: Seconds between two signs of life while shares move.

    Attributes:
        share: What it may run in the end, when the others have given back what they have too much.
        rank: Which one it is of those that start refreshes.
    """

    def __init__(self, catalog: Catalog, owner: str, total: Slots, poll: float) -> None:
        self._catalog = catalog
        self._owner = owner
        self._total = total
        self._poll = poll
        self._beaten = 0.0
        self._settled = False
        self.share = total
        self.rank = Rank()

    def join(self, stopping: threading.Event, events: Events) -> None:
        """Register; wait for a sign of life of another one that may be dead.

        That may be the former process of a restarted container, whose numbers of processes mean nothing in this one. It
        is taken for dead when it was silent for long enough.

        Args:
            stopping: Ends the wait.
            events: Hear that it waits.

        Raises:
            UserError: `SCHEDULER_RUNNING` where there may be only one; `CATALOG_COPIED`.
        """
        silent: dict[str, dt.datetime] = {}
        waited = False
        while True:
            try:
                self._register()
            except UserError as error:
                if error.code != "SCHEDULER_RUNNING":
                    raise
                others = self._catalog.schedulers()
                if not all(is_out_of_sight(s.owner) for s in others):
                    raise
                if any(silent.setdefault(s.owner, s.expires_at) != s.expires_at for s in others):
                    raise
                if not waited:
                    events.emit(Notice(_WAITS))
                waited = True
                if stopping.wait(self._poll):
                    raise
            else:
                return

    def _register(self) -> None:
        self._catalog.register_scheduler(self._owner, TTL, is_dead=owner_is_dead)

    def rejoin(self) -> None:
        """Register once more, having been taken for dead.

        Where the catalog fails, the next sign of life shows that it is still to be done.

        Raises:
            UserError: `SCHEDULER_RUNNING` when another one, where there may be only one, took its place.
        """
        with suppress(EnvironmentFault):
            self._register()
            self._settled = False

    def leave(self) -> None:
        """Say that it ended; never fails."""
        with suppress(HeadraceError):
            self._catalog.unregister_scheduler(self._owner)

    def hasten(self) -> None:
        """Make the next sign of life due at once."""
        self._beaten = 0.0

    def beat(self, running: Slots, *, ending: bool) -> Beat | None:
        """Give a sign of life; None where it is not due.

        Args:
            running: What it runs.
            ending: Whether it starts nothing more.

        Raises:
            UserError: `CATALOG_COPIED`.
            HeadraceError: The catalog does not answer, or cannot be written.
        """
        if time.monotonic() - self._beaten < (BEAT_SECONDS if self._settled else min(BEAT_SECONDS, self._poll)):
            return None
        self._beaten = time.monotonic()
        found: list[Portion] = []

        def claim(alive: Sequence[SchedulerRecord]) -> Mapping[str, object]:
            found.append(portion(self._total, running, self._owner, alive, ending=ending))
            return found[-1].claim.as_dict()

        alive = self._catalog.scheduler_beat(self._owner, TTL, claim, ending=ending)
        if not found:
            return Beat()
        own = found[-1]
        moved = (own.share, own.rank) != (self.share, self.rank)
        self.share, self.rank, self._settled = own.share, own.rank, own.settled
        draining = next(s.draining for s in alive if s.owner == self._owner)
        return Beat(own.room, moved, leads=alive[0].owner == self._owner, draining=draining)
