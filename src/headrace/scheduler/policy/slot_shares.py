"""Divides refreshes at once among several schedulers, over all and by pool. Pure.

Each claims what it may run from now on, in the catalog, one after the other, and never what others claim: who comes
begins with what is left, and gets its share as the refreshes of the others end. So together they never run more than
one alone would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from headrace.catalog import SchedulerRecord


@dataclass(frozen=True, slots=True)
class Slots:
    """Refreshes at once.

    Args:
        all: Over all.
        pools: By pool.
    """

    all: int = 0
    pools: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as the catalog keeps it."""
        return {"all": self.all, "pools": dict(self.pools)}

    @classmethod
    def of(cls, claim: Mapping[str, Any] | None) -> Self:
        """Convert back what the catalog has; nothing for a scheduler that has claimed nothing yet."""
        return cls(claim["all"], claim["pools"]) if claim else cls()

    def admits(self, pools: Iterable[str]) -> bool:
        """Return whether all tasks of a unit can ever start, by the pools that they count against."""
        return self.all > 0 and all(self.pools.get(pool, 1) > 0 for pool in pools)


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of one scheduler among several.

    Args:
        place: From 0, in the order they began.
        schedulers: How many start refreshes.
    """

    place: int = 0
    schedulers: int = 1


@dataclass(frozen=True, slots=True)
class Portion:
    """One scheduler's share of the slots and pools.

    Args:
        share: In the end, when the others have given back what they have too much.
        room: At most, for now; a unit is started while less run.
        claim: What nobody else may have: the room, or more where more run already.
        rank: Which one it is of those that start refreshes.
    """

    share: Slots
    room: Slots
    claim: Slots
    rank: Rank

    @property
    def settled(self) -> bool:
        """Return whether it has what it is to have, and no more."""
        return self.share == self.room == self.claim


def portion(
    total: Slots, running: Slots, owner: str, alive: Sequence[SchedulerRecord], *, ending: bool = False
) -> Portion:
    """Compute one scheduler's share of the slots and pools.

    Args:
        total: What there is for all.
        running: What it runs.
        owner: Who it is.
        alive: All that run, in the order they began, with what they claim.
        ending: Whether it starts nothing more.
    """
    working = [s.owner for s in alive if not (s.draining or (ending and s.owner == owner))]
    others = [Slots.of(s.claim) for s in alive if s.owner != owner]
    rank = Rank(working.index(owner), len(working)) if owner in working else None

    def of(most: int, claimed: int, runs: int) -> tuple[int, int, int]:
        own = share(most, rank.place, rank.schedulers) if rank is not None else 0
        room = max(0, min(own, most - claimed))
        return own, room, max(room, runs)

    every = of(total.all, sum(o.all for o in others), running.all)
    pools = {
        pool: of(most, sum(o.pools.get(pool, 0) for o in others), running.pools.get(pool, 0))
        for pool, most in total.pools.items()
    }
    own, room, claim = (Slots(every[i], {pool: found[i] for pool, found in pools.items()}) for i in range(3))
    return Portion(own, room, claim, rank or Rank())


def share(slots: int, place: int, schedulers: int) -> int:
    """Return one scheduler's slots; all shares together add up to `slots`.

    Args:
        slots: Refreshes at once, over all; those of a pool alike.
        place: Which scheduler it is, from 0, in the order they began.
        schedulers: How many there are.
    """
    return slots // schedulers + (place < slots % schedulers)
