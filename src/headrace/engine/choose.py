"""FULL or DIFFERENTIAL: obstacles first, then the estimated cost, corrected by the table's own history.

The model counts seconds on one machine class; only the comparison matters. Every refresh has a fixed part (jobs and
commits), FULL pays for every source row and every value of the result, DIFFERENTIAL for the change, for reading the
other inputs once per changed input of a join, and for finding the rows to delete in a state without a key. The
constants were measured with `make bench` on two cores; history replaces them as soon as there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.engine.facts import Facts, Pace
from headrace.engine.results import Mode, RefreshMode
from headrace.errors import Unsupported
from headrace.reasons import FullReason

FULL_FIXED = 0.25
DIFFERENTIAL_FIXED = 0.35
COMPANION_FIXED = 0.2
"""Seconds of a refresh that does next to nothing; a companion is one more table to write."""
READ_ROWS_PER_SECOND = 4_000_000
WRITE_VALUES_PER_SECOND = 14_000_000
COMPARE_ROWS_PER_SECOND = 500_000
"""After FULL, the old and the new contents are compared where somebody reads the difference."""
CHANGE_ROWS_PER_SECOND = 250_000
DEFAULT_ROWS = 1_000_000

PROBE_EVERY = 12
PROBE_LIMIT = 3.0
"""The mode that history speaks against is tried after so many refreshes of the other, unless it costs so much more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a refresh will run.

    Args:
        mode: FULL or DIFFERENTIAL (NO_CHANGE when the frontier only moves).
        reason: Why FULL.
        detail: The reason in words.
        full_seconds: The model's cost of FULL, before correction by history.
        differential_seconds: The model's cost of DIFFERENTIAL; None when impossible.
    """

    mode: Mode
    reason: FullReason | None = None
    detail: str | None = None
    full_seconds: float | None = None
    differential_seconds: float | None = None


def choose(facts: Facts) -> Choice:
    """Decide how to refresh.

    Raises:
        Unsupported: `NOT_MAINTAINABLE` when the user insists on DIFFERENTIAL and the query cannot be maintained.
    """
    full = estimate_full(facts)
    if found := obstacle(facts):
        return Choice(Mode.FULL, found[0], found[1], full)
    if not facts.changed:
        return Choice(Mode.NO_CHANGE)
    differential = estimate_differential(facts)
    expected = full * (facts.pace.full or 1.0), differential * (facts.pace.differential or 1.0)
    if facts.refresh_mode is RefreshMode.AUTO and _prefers_full(facts.pace, expected, full < differential):
        detail = f"FULL is estimated at {expected[0]:.1f} s, DIFFERENTIAL at {expected[1]:.1f} s"
        return Choice(Mode.FULL, FullReason.COST, detail, full, differential)
    return Choice(Mode.DIFFERENTIAL, None, None, full, differential)


def _prefers_full(pace: Pace, expected: tuple[float, float], model: bool) -> bool:
    """Which mode to take: what the history expects, but now and then what the model says, should times have changed.

    Args:
        pace: The table's history.
        expected: Corrected seconds of FULL and of DIFFERENTIAL.
        model: Whether the model alone prefers FULL.
    """
    full = expected[0] < expected[1]
    age = pace.full_age if model else pace.differential_age
    if full != model and age >= PROBE_EVERY and max(expected) <= PROBE_LIMIT * min(expected):
        return model
    return full


def obstacle(facts: Facts) -> tuple[FullReason, str] | None:
    """What leaves no choice but FULL, as code and words.

    Raises:
        Unsupported: `NOT_MAINTAINABLE`, as `choose`.
    """
    if facts.first_load:
        return FullReason.FIRST_LOAD, FullReason.FIRST_LOAD.sentence
    if facts.forced or facts.refresh_mode is RefreshMode.FULL:
        return FullReason.FORCED, "refresh mode is FULL" if not facts.forced else FullReason.FORCED.sentence
    if facts.obstacle:
        return facts.obstacle.reason, facts.obstacle.detail
    if facts.details.refusals:
        first = facts.details.refusals[0]
        if facts.refresh_mode is RefreshMode.DIFFERENTIAL:
            raise Unsupported(
                "NOT_MAINTAINABLE",
                f"{facts.name} cannot be refreshed DIFFERENTIAL: {first.message}",
                hint=first.hint or "Use refresh mode AUTO.",
            )
        return first.code, first.message
    for source in facts.sources:
        if source.obstacle:
            return source.obstacle.reason, source.obstacle.detail
    return None


def estimate_full(facts: Facts) -> float:
    """Seconds of a FULL refresh by the model alone."""
    read = sum(s.rows if s.rows is not None else DEFAULT_ROWS for s in facts.sources)
    written = facts.state_rows if facts.state_rows is not None else read
    fixed = FULL_FIXED if facts.companion is None else FULL_FIXED + COMPANION_FIXED
    seconds = fixed + read / READ_ROWS_PER_SECOND + written * len(facts.details.output) / WRITE_VALUES_PER_SECOND
    if facts.log is not None and not facts.first_load:
        seconds += FULL_FIXED + 2 * written / COMPARE_ROWS_PER_SECOND
    return seconds


def estimate_differential(facts: Facts) -> float:
    """Seconds of a DIFFERENTIAL refresh by the model alone."""
    changed = [s for s in facts.sources if s.change is not None]
    delta = sum(s.change_rows if s.change_rows is not None else DEFAULT_ROWS for s in changed)
    others = sum(
        o.rows if o.rows is not None else DEFAULT_ROWS for s in changed for o in facts.sources if o.name != s.name
    )
    state = (facts.state_rows or 0) if facts.companion is None else 0
    fixed = DIFFERENTIAL_FIXED if facts.companion is None else DIFFERENTIAL_FIXED + COMPANION_FIXED
    # rows deleted in place are found by reading the files they are in
    deleting = sum(s.rows or 0 for s in changed if not (s.appended or s.logged))
    return fixed + delta / CHANGE_ROWS_PER_SECOND + (others + state + deleting / 2) / READ_ROWS_PER_SECOND
