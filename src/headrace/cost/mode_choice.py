"""Chooses FULL or DIFFERENTIAL: by obstacles, then by calibrated cost estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.cost.cost_model import LEAST, companion_seconds, differential_seconds, full_seconds
from headrace.errors import Unsupported
from headrace.physical.facts import Facts
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, RefreshMode
from headrace.statistics.calibration import Calibration

PROBE_EVERY = 12
PROBE_LIMIT = 3.0
"""The mode that history speaks against is tried after so many refreshes of the other, unless it costs so much more."""
UNKNOWN_LIMIT = 2.0
"""The same for one of which history says nothing: the model alone is less to rely on."""
PAYBACK = 5
"""A companion that was left behind is written again where following changes saves that in so many refreshes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A mode with its reason and the estimates behind it.

    Args:
        mode: FULL or DIFFERENTIAL (NO_CHANGE when the frontier only moves).
        reason: Why FULL.
        detail: The reason in words.
        full_seconds: The model's cost of FULL, before correction by history.
        differential_seconds: The model's cost of DIFFERENTIAL; None when impossible.
        leaves_companion: Whether FULL leaves the companion behind, which only following changes needs.
    """

    mode: Mode
    reason: FullReason | None = None
    detail: str | None = None
    full_seconds: float | None = None
    differential_seconds: float | None = None
    leaves_companion: bool = False


def choose(facts: Facts, view: CompiledView | None, program: DeltaProgram | None) -> Choice:
    """Decide how to refresh.

    Args:
        facts: The refresh.
        view: The query; None where it is not maintained.
        program: How it would follow the change; None where it is not maintained, or nothing can have changed.

    Raises:
        Unsupported: `NOT_MAINTAINABLE` when the user insists on DIFFERENTIAL and the query cannot be maintained.
    """
    found = obstacle(facts)
    if not found and not facts.changed:
        return Choice(Mode.NO_CHANGE)
    full, companion = full_seconds(facts, view), companion_seconds(facts, view)
    if found:
        leaves = facts.companion is not None and facts.refresh_mode is RefreshMode.FULL and not facts.forced
        return Choice(Mode.FULL, *found, full if leaves else full + companion, leaves_companion=leaves)
    if program is None:  # what changed says nothing
        return Choice(Mode.DIFFERENTIAL, None, None, full, 0.0)
    leaves = _leaves_companion(facts, full, companion)
    wanted, differential = full if leaves else full + companion, differential_seconds(facts, program)
    if facts.refresh_mode is RefreshMode.AUTO:
        again = companion / PAYBACK if facts.companion_behind else 0.0
        paces = facts.calibration.either
        expected = wanted * paces[0], differential * paces[1] + again * paces[0]
        if _prefers_full(_aged(facts), expected, wanted < differential + again):
            detail = _detail(facts, expected)
            return Choice(Mode.FULL, FullReason.COST, detail, wanted, differential, leaves)
    if facts.companion_behind:
        reason = FullReason.COMPANION_BEHIND
        return Choice(Mode.FULL, reason, reason.sentence, full + companion, differential)
    return Choice(Mode.DIFFERENTIAL, None, None, wanted, differential)


def _leaves_companion(facts: Facts, full: float, companion: float) -> bool:
    """Return whether a FULL refresh that is chosen for its cost leaves the companion behind.

    Writing it costs each of them something; to be without it costs once, when changes are to be followed again: FULL
    instead of DIFFERENTIAL. Nobody knows how many there will be. So it is written until that has cost as much as to be
    without it can, by which no more than twice the least is ever spent (Karlin, Manasse, Rudolph, Sleator, Competitive
    snoopy caching, 1988: who rents skis buys them once the rent has come to their price).

    Args:
        facts: The refresh.
        full: Seconds of FULL without the companion, by the model.
        companion: Seconds of writing it.
    """
    if facts.companion is None or facts.companion_behind:
        return facts.companion_behind
    paces = facts.calibration.either
    return facts.recomputed * companion * paces[0] >= (full + companion) * paces[0] - LEAST * paces[1]


def _aged(facts: Facts) -> Calibration:
    """Return the table's history.

    To try how long following takes is twice the effort where the companion comes first.
    """
    return (
        replace(facts.calibration, differential_age=facts.recomputed // 2)
        if facts.companion_behind
        else facts.calibration
    )


def _detail(facts: Facts, expected: tuple[float, float]) -> str:
    """Return the reason for FULL in words."""
    estimates = f"FULL is estimated at {expected[0]:.1f} s, DIFFERENTIAL at {expected[1]:.1f} s"
    if facts.companion_behind:
        estimates += " with a fifth of what writing its companion again takes"
    if expected[0] <= expected[1]:
        return estimates
    return f"{estimates}, and FULL is tried to see " + (
        "how long it takes" if facts.calibration.full is None else "whether that still holds"
    )


def _prefers_full(calibration: Calibration, expected: tuple[float, float], model: bool) -> bool:
    """Return whether to take FULL: if its estimate is lower, but now and then otherwise.

    That is the one that the model prefers, should times have changed, or one that was never measured.

    Args:
        calibration: By the table's history.
        expected: Corrected seconds of FULL and of DIFFERENTIAL.
        model: Whether the model alone prefers FULL.
    """
    full = expected[0] < expected[1]
    own, other = (calibration.full, calibration.differential) if full else (calibration.differential, calibration.full)
    age = calibration.differential_age if full else calibration.full_age
    teaches = own is not None and other is None  # in a session that is never warm nothing would be learnt
    limit = PROBE_LIMIT if full != model else UNKNOWN_LIMIT if teaches else 0.0
    return full != (age >= PROBE_EVERY and max(expected) <= limit * min(expected))


def obstacle(facts: Facts) -> tuple[FullReason, str] | None:
    """Return why nothing but FULL is possible, as code and words, else None.

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
