"""FULL or DIFFERENTIAL: obstacles first, then the estimated cost, corrected by the table's own history."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.compiler import CompiledView, DeltaProgram
from headrace.engine.estimate import differential_seconds, full_seconds
from headrace.engine.facts import Facts, Pace
from headrace.engine.results import Mode, RefreshMode
from headrace.errors import Unsupported
from headrace.reasons import FullReason

PROBE_EVERY = 12
PROBE_LIMIT = 3.0
"""The mode that history speaks against is tried after so many refreshes of the other, unless it costs so much more."""
UNKNOWN_LIMIT = 2.0
"""The same for one of which history says nothing: the model alone is less to rely on."""


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


def choose(facts: Facts, view: CompiledView | None, program: DeltaProgram | None) -> Choice:
    """Decide how to refresh.

    Args:
        facts: The refresh.
        view: The query; None where it is not maintained.
        program: How it would follow the change; None where it is not maintained, or nothing can have changed.

    Raises:
        Unsupported: `NOT_MAINTAINABLE` when the user insists on DIFFERENTIAL and the query cannot be maintained.
    """
    if found := obstacle(facts):
        return Choice(Mode.FULL, found[0], found[1], full_seconds(facts, view))
    if not facts.changed:
        return Choice(Mode.NO_CHANGE)
    full = full_seconds(facts, view)
    differential = differential_seconds(facts, program) if program is not None else 0.0
    paces = facts.pace.either
    expected = full * paces[0], differential * paces[1]
    if facts.refresh_mode is RefreshMode.AUTO and _prefers_full(facts.pace, expected, full < differential):
        return Choice(Mode.FULL, FullReason.COST, _detail(facts.pace, expected), full, differential)
    return Choice(Mode.DIFFERENTIAL, None, None, full, differential)


def _detail(pace: Pace, expected: tuple[float, float]) -> str:
    """Why FULL, in words."""
    estimates = f"FULL is estimated at {expected[0]:.1f} s, DIFFERENTIAL at {expected[1]:.1f} s"
    if expected[0] <= expected[1]:
        return estimates
    return f"{estimates}, and FULL is tried to see " + (
        "how long it takes" if pace.full is None else "whether that still holds"
    )


def _prefers_full(pace: Pace, expected: tuple[float, float], model: bool) -> bool:
    """Which mode to take: what is expected, but now and then the other one.

    That is the one that the model prefers, should times have changed, or one that was never measured.

    Args:
        pace: The table's history.
        expected: Corrected seconds of FULL and of DIFFERENTIAL.
        model: Whether the model alone prefers FULL.
    """
    full = expected[0] < expected[1]
    own, other = (pace.full, pace.differential) if full else (pace.differential, pace.full)
    age = pace.differential_age if full else pace.full_age
    teaches = own is not None and other is None  # in a session that is never warm nothing would be learnt
    limit = PROBE_LIMIT if full != model else UNKNOWN_LIMIT if teaches else 0.0
    return full != (age >= PROBE_EVERY and max(expected) <= limit * min(expected))


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
