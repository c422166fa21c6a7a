"""Reports which passes fired for a query, their changes, and the cost before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.algebra.relations import Relation
from headrace.algebra.tree import walk
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.strategies import kept_in_words
from headrace.cost.cost_model import differential_seconds, full_seconds
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details
from headrace.ivm.change import Change
from headrace.ivm.program import DeltaProgram
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer_pass import Pass
from headrace.optimizer.passes import PASSES
from headrace.physical.facts import Facts
from headrace.physical.program_cache import Asked
from headrace.results.refresh_results import Explanation, PassInfo


@dataclass(slots=True)
class _Runs:
    """Takes down each run of a pass, as the optimiser reports it."""

    seen: list[tuple[Pass, Any, Any]] = field(default_factory=list)

    def observe(self, each: Pass, before: Any, after: Any) -> None:
        self.seen.append((each, before, after))


def pass_report(
    details: Details, plans: CompiledViews, facts: Facts | None, asked: Asked | None
) -> tuple[PassInfo, ...]:
    """Compile a definition anew, derive the program of its next refresh, and report every pass.

    Args:
        details: The definition.
        plans: Compiles it; what it remembers stays as it is.
        facts: The refresh, for costs; None of a query that is no stream table, and of a member of a cycle.
        asked: The key of the refresh's program; without one all sources count as changed.

    Returns:
        A line for each run of a pass that changed something, in order, then one for each pass that did not.
    """
    runs = _Runs()
    view = plans.compile(details, observe=runs.observe)
    if details.cyclic:
        view.gains_program(frozenset(view.sources))
    elif asked is not None:
        asked.of(view)
    else:
        view.delta_program(frozenset(view.sources))
    fired = [info for run in runs.seen if (info := _fired(*run, view, facts)) is not None]
    names = {info.name for info in fired}
    off = details.disabled_passes | view.optimizer.disabled
    return (*fired, *_idle(names, off))


def with_passes(
    found: Explanation,
    details: Details,
    plans: CompiledViews,
    facts: Facts | None = None,
    asked: Asked | None = None,
) -> Explanation:
    """Add the report of passes to an explanation; arguments as `pass_report`."""
    report = pass_report(details, plans, facts, asked) if details.incremental else ()
    section = (("passes", report_text(report) or "The query is not maintained, so that no pass runs."),)
    return replace(found, sections=(*found.sections, *section), passes=report)


def _idle(fired: set[str], disabled: Iterable[str]) -> Iterator[PassInfo]:
    seen = set(fired)
    for each in PASSES:
        if each.name in seen:
            continue
        seen.add(each.name)
        yield _info(each, fired=False, change="switched off" if each.name in disabled else "nothing to change")


def _fired(each: Pass, before: Any, after: Any, view: CompiledView, facts: Facts | None) -> PassInfo | None:
    words = _words(before, after, view)
    if not words:
        return None
    costs = _seconds(before, view, facts), _seconds(after, view, facts)
    return replace(_info(each, fired=True, change=words), seconds_before=costs[0], seconds_after=costs[1])


def _info(each: Pass, *, fired: bool, change: str) -> PassInfo:
    return PassInfo(
        each.name,
        each.phase.value,
        fired,
        change,
        claim=each.claim,
        assumes=each.assumes,
        cost_based=each.cost_based,
    )


def _words(before: Any, after: Any, view: CompiledView) -> str:
    """Say in a line what a pass changed; nothing where it changed nothing."""
    match after:
        case AuxiliaryViews():
            return "" if after == before else "keeps " + "; ".join(_kept(after, view))
        case Change():
            groups = len(after.partners)
            return f"restricts {_counted(groups, 'aggregate')} to groups with partners" if groups else ""
    if after == before:
        return ""
    was, now = Counter(_operators(before)), Counter(_operators(after))
    moved = [f"{now[each] - was[each]:+d} {each}" for each in sorted(was | now) if now[each] != was[each]]
    size = f"{was.total()} → {now.total()} operators"
    return f"{size}: {', '.join(moved)}" if moved else f"{size}, moved or narrowed"


def _kept(views: AuxiliaryViews, view: CompiledView) -> Iterator[str]:
    return kept_in_words(view.tree, views) if view.tree is not None else iter(())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _operators(found: Relation | DeltaProgram) -> Iterator[str]:
    """Yield the kinds of the operators of a tree, or of all that a program computes."""
    if isinstance(found, Relation):
        yield from (type(node).__name__ for node in walk(found))
        return
    changes = [change.change for change in (found.state, found.companion) if change is not None]
    for relation in (*(step.relation for step in found.steps), *changes):
        yield from _operators(relation)


def _seconds(found: Any, view: CompiledView, facts: Facts | None) -> float | None:
    """Return seconds by the cost model: of FULL for a query, of DIFFERENTIAL for a program.

    None where it says nothing.
    """
    if facts is None:
        return None
    if isinstance(found, DeltaProgram):
        return differential_seconds(facts, found)
    return full_seconds(facts, replace(view, tree=found)) if isinstance(found, Relation) else None


def report_text(report: Iterable[PassInfo]) -> str:
    """Write a line for each run of a pass; below the first, what the pass rests on."""
    lines, told = list[str](), set[str]()
    for info in report:
        lines.append(_line(info))
        if info.fired and info.name not in told:
            told.add(info.name)
            lines += [f"    {reason}" for reason in _reasons(info)]
    return "\n".join(lines)


def _reasons(info: PassInfo) -> Iterator[str]:
    yield f"claim: {info.claim}"
    if info.assumes:
        yield f"assumes: {info.assumes}{'; decided by cost' if info.cost_based else ''}"


def _line(info: PassInfo) -> str:
    costs = info.seconds_before, info.seconds_after
    cost = "" if None in costs else f"; {costs[0]:.2f} s → {costs[1]:.2f} s by the model"
    return f"{'✓' if info.fired else '·'} {info.name} ({info.phase}): {info.change}{cost}"
