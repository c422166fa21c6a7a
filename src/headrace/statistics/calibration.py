"""Compares measured times of a table's refreshes with their estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from math import sqrt

from headrace.catalog import HistoryEntry, Outcome, RanAs
from headrace.reasons import FullReason

MODEL = 6
"""Of which model an estimate is; what history says of another one corrects nothing."""

SHARED = "shared"
"""Name in `metrics` of the seconds by which a refresh would have taken longer had all that read the same computed a
part of it; negative for the one that computed it."""

PACES = "paces"
"""Name in `metrics` of the pace of both modes as it was known before a refresh: what is remembered of a mode whose own
refreshes were too long ago to be read."""

RECOMPUTED = "recomputed"
"""Name in `metrics` of how many refreshes in a row before it were FULL because that was expected to be cheaper."""

PACE_ENTRIES = 5
"""Past refreshes of a mode that correct its estimate, at most."""

SURE = 3
"""Refreshes of a mode that are enough to tell more than how fast the machine is.

The first ones compile what the query needs.
"""

WARM = 10
"""A session's first refreshes of a mode tell how long Spark takes to warm up, not how long the mode takes."""

OTHERS = 10
"""Refreshes of the other mode that count as one."""

FADING = 0.7
"""The power to which what is remembered is raised, once in as many refreshes as are read: it may not be so for ever."""

ANEW = frozenset({FullReason.FIRST_LOAD, FullReason.DEFINITION_CHANGED, FullReason.FUNCTION_CHANGED})
"""Reasons for loads before which history tells nothing: the query was another one."""


MACHINES = 1.5
"""By how much machines are taken to differ."""


def of_machine(factor: float) -> float:
    """Clamp a ratio to the range that differences of machines explain."""
    return min(max(factor, 1 / MACHINES), MACHINES)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Ratios of measured to estimated seconds of a table's refreshes, by mode.

    Args:
        full: Seconds of its recent FULL refreshes divided by what was estimated for them; None without any.
        differential: The same for DIFFERENTIAL ones.
        full_age: How many refreshes ran since the last FULL one.
        differential_age: The same for DIFFERENTIAL.
    """

    full: float | None = None
    differential: float | None = None
    full_age: int = 0
    differential_age: int = 0

    @property
    def either(self) -> tuple[float, float]:
        """Return the factors for estimates of FULL and of DIFFERENTIAL.

        Of a mode without a history as much as may be the machine's is taken from the other one: else a slow machine
        would have whatever was never measured look better than it is.
        """
        full = self.full or of_machine(self.differential or 1.0)
        return full, self.differential or of_machine(self.full or 1.0)


def warmth(ran: Mapping[RanAs, int], mode: RanAs) -> int:
    """Count a mode's refreshes that warmed the session.

    `OTHERS` refreshes in the other mode count as one.

    Args:
        ran: How many there were in the session, by mode.
        mode: The mode.
    """
    return ran.get(mode, 0) + sum(number for other, number in ran.items() if other is not mode) // OTHERS


def calibrated(history: tuple[HistoryEntry, ...]) -> Calibration:
    """Calibrate by history: the best recent ratio of each mode in warm sessions.

    A first load tells how long Spark takes to compile what the query needs: two to three times what a later one takes.
    A mode that runs now and then only is remembered from one refresh to the next (`remembered`), and fades; what such
    a one tells anew counts half.

    Args:
        history: The table's last refreshes, newest first.
    """
    since = tuple(takewhile(lambda entry: entry.reason not in ANEW, history))
    ran = [e for e in since if e.outcome is Outcome.OK and e.mode in (RanAs.FULL, RanAs.DIFFERENTIAL)]
    full, differential = (_ratio(ran, mode, _before(since, mode)) for mode in (RanAs.FULL, RanAs.DIFFERENTIAL))
    return Calibration(full, differential, _age(ran, RanAs.FULL), _age(ran, RanAs.DIFFERENTIAL))


def _ratio(ran: list[HistoryEntry], mode: RanAs, before: float | None) -> float | None:
    recent = [_own(entry) / float(entry.metrics["estimate"]) for entry in ran if entry.mode is mode and _tells(entry)]
    best = min(max(min(recent[:PACE_ENTRIES]), 0.2), 10.0) if recent else None
    if best is None or len(recent) >= SURE:
        return best or before
    return of_machine(best) if before is None else sqrt(best * before)


def remembered(calibration: Calibration) -> dict[str, float]:
    """Return the calibration that a refresh stores in its metrics under `PACES`."""
    known = {RanAs.FULL: calibration.full, RanAs.DIFFERENTIAL: calibration.differential}
    return {mode.value: round(ratio, 4) for mode, ratio in known.items() if ratio is not None}


def recomputed(history: tuple[HistoryEntry, ...]) -> int:
    """Return how many refreshes in a row have been FULL because that was expected to be cheaper.

    Args:
        history: The table's last refreshes, newest first.
    """
    ran = [entry for entry in history if entry.mode is not RanAs.NO_CHANGE]
    row = sum(1 for _ in takewhile(lambda entry: entry.reason == FullReason.COST, ran))
    before = ran[-1].metrics.get(RECOMPUTED, 0) if ran and row == len(ran) else 0  # those that are not read any more
    return row + int(before)


def _before(history: tuple[HistoryEntry, ...], mode: RanAs) -> float | None:
    """Return a mode's ratio as remembered by the oldest entry of the history."""
    metrics = history[-1].metrics if history else {}
    known = metrics.get(PACES, {}).get(mode.value) if metrics.get("model") == MODEL else None
    return None if known is None else float(known) ** FADING


def _tells(entry: HistoryEntry) -> bool:
    """Return whether a refresh can be compared with the model's estimate."""
    metrics, warm = entry.metrics, int(entry.metrics.get("session", 0) or 0) >= WARM
    estimated = bool(metrics.get("estimate")) and metrics.get("model") == MODEL
    return estimated and warm


def _own(entry: HistoryEntry) -> float:
    """Return a refresh's seconds, with its share of work that others reused."""
    return entry.seconds + float(entry.metrics.get(SHARED, 0) or 0)


def _age(ran: list[HistoryEntry], mode: RanAs) -> int:
    return next((age for age, entry in enumerate(ran) if entry.mode is mode), len(ran))
