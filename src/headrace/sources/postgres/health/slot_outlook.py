"""Predicts when a slot is lost if nothing is landed: by log room and idleness. Pure.

How fast the log grows is known from looks at the server: two of them are remembered, so that the rate is that of the
last minutes. Without a look before there is no rate, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SPAN = 300.0
"""Seconds between remembered looks, at least: a rate is that of once to twice as long."""

APART = 2.0
"""Seconds between two looks that say something about a rate."""

SOON = 3600.0
"""Seconds before the loss of a slot at which a warning is given."""

MUCH = 8 << 30
"""Bytes of log kept for a slot, where nothing limits them, above which a warning is given.

Not while some of them become dispensable and they grow no more.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a server and a slot.

    Args:
        at: The server's time, in seconds since 1970.
        system: Its system identifier.
        log: Up to where its log is written.
        left: Bytes of log until the slot may be lost; None without a limit.
        kept: Bytes of log that the server keeps for the slot.
        idle: Seconds since the slot was last read; None while somebody reads it, and on servers before 17.
        patience: `idle_replication_slot_timeout` in seconds; None where there is none.
    """

    at: float
    system: str
    log: int
    left: int | None
    kept: int
    idle: float | None
    patience: float | None

    @property
    def oldest(self) -> int:
        """Return from where on the log is kept."""
        return self.log - self.kept


@dataclass(frozen=True, slots=True)
class Outlook:
    """A prediction of when a slot is lost if nothing more is landed.

    Args:
        rate: Bytes of log that the server writes in a second; None where that is not known yet.
        room_ends: Seconds until there is no room for what it keeps; None without a limit, or where that is not known.
        idle_ends: Seconds until it counts as idle; None where the server does not ask.
        why: Why it should be warned of, in words; None where all is well.
    """

    rate: float | None
    room_ends: float | None
    idle_ends: float | None
    why: str | None

    @property
    def seconds(self) -> float | None:
        """Return seconds until the slot is lost, for whichever reason; None where that is not known."""
        return min((end for end in (self.room_ends, self.idle_ends) if end is not None), default=None)


def remembered(looks: Sequence[Look], now: Look) -> tuple[Look, ...]:
    """Return the looks to keep, oldest first.

    A new look is kept once `SPAN` has passed since the last one, and then replaces all but that.

    Args:
        looks: Those that are kept so far, oldest first.
        now: The new one.
    """
    same = [look for look in looks if look.system == now.system and look.log <= now.log]
    if not same or now.at - same[-1].at >= SPAN:
        return (*same[-1:], now)
    return tuple(same)


def outlook(looks: Sequence[Look], now: Look) -> Outlook:
    """Predict from looks at a slot when it will be lost.

    Args:
        looks: Remembered ones, oldest first.
        now: The newest.
    """
    before = next((k for k in looks if k.system == now.system and k.log <= now.log and now.at - k.at >= APART), None)
    rate = None if before is None else (now.log - before.log) / (now.at - before.at)
    room_ends = None if now.left is None or not rate else max(0, now.left) / rate
    idle_ends = None
    if now.patience and now.idle is not None:
        idle_ends = max(0.0, now.patience - now.idle)
    return Outlook(rate, room_ends, idle_ends, _why(before, now, room_ends, idle_ends))


def _why(before: Look | None, now: Look, room_ends: float | None, idle_ends: float | None) -> str | None:
    """Return the reason to warn, if any.

    A busy server whose slot follows is none, however soon the room would end otherwise.
    """
    if now.left is not None:
        shrinks = before is not None and before.left is not None and now.left < before.left
        if now.left < now.kept // 3 or (shrinks and room_ends is not None and room_ends < SOON):
            return "the log that it keeps comes near max_slot_wal_keep_size"
    elif now.kept > MUCH and before is not None and (now.kept > before.kept or now.oldest == before.oldest):
        much = f"the server keeps {now.kept >> 30} GiB of log for its replication slot"
        return f"{much}, and ever more until its disk is full: max_slot_wal_keep_size is not limited"
    if idle_ends is not None and now.patience and idle_ends < min(SOON, now.patience / 4):
        return "it was not read for nearly as long as idle_replication_slot_timeout allows"
    return None


def as_row(look: Look) -> dict[str, Any]:
    """Return a look as the catalog keeps it."""
    return asdict(look)


def as_json(looks: Sequence[Look]) -> list[dict[str, Any]]:
    """Return looks as the catalog keeps them."""
    return list(map(as_row, looks))


def from_json(looks: Sequence[Mapping[str, Any]]) -> tuple[Look, ...]:
    """Convert back what `as_json` returned."""
    return tuple(Look(**look) for look in looks)
