"""How fast a table's refreshes have been, against what was estimated for them."""

from __future__ import annotations

from headrace.catalog import HistoryEntry, Outcome, RanAs
from headrace.engine.facts import Pace, of_machine
from headrace.reasons import FullReason

MODEL = 2
"""Of which model an estimate is; what history says of another one corrects nothing."""

SHARED = "shared"
"""Name in `metrics` of the seconds by which a refresh would have taken longer had all that read the same computed a
part of it; negative for the one that computed it."""

PACE_ENTRIES = 5
"""How many past refreshes of a mode correct its estimate."""

SURE = 3
"""So many tell of a mode more than how fast the machine is: the first ones compile what the query needs."""

WARM = 10
"""A session's first refreshes of a mode tell how long Spark takes to warm up, not how long the mode takes."""


def pace(history: tuple[HistoryEntry, ...]) -> Pace:
    """How real times related to the estimates, by mode: the best of the recent ratios in sessions that were warm.

    A first load tells how long Spark takes to compile what the query needs: two to three times what a later one takes.
    """
    ran = [e for e in history if e.outcome is Outcome.OK and e.mode in (RanAs.FULL, RanAs.DIFFERENTIAL)]
    return Pace(
        _ratio(ran, RanAs.FULL), _ratio(ran, RanAs.DIFFERENTIAL), _age(ran, RanAs.FULL), _age(ran, RanAs.DIFFERENTIAL)
    )


def _ratio(ran: list[HistoryEntry], mode: RanAs) -> float | None:
    recent = [_own(entry) / float(entry.metrics["estimate"]) for entry in ran if entry.mode is mode and _tells(entry)]
    if not recent:
        return None
    best = min(recent[:PACE_ENTRIES])
    return min(max(best, 0.2), 10.0) if len(recent) >= SURE else of_machine(best)


def _tells(entry: HistoryEntry) -> bool:
    """Whether a refresh says something about what this model estimates."""
    metrics, warm = entry.metrics, int(entry.metrics.get("session", 0) or 0) >= WARM
    estimated = bool(metrics.get("estimate")) and metrics.get("model") == MODEL
    return estimated and warm and entry.reason != FullReason.FIRST_LOAD


def _own(entry: HistoryEntry) -> float:
    """Seconds of a refresh, with its part of what it read together with others: who comes first is no slower."""
    return entry.seconds + float(entry.metrics.get(SHARED, 0) or 0)


def _age(ran: list[HistoryEntry], mode: RanAs) -> int:
    return next((age for age, entry in enumerate(ran) if entry.mode is mode), len(ran))
