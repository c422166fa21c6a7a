"""Tells what a refresh did, step by step: EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.cost.cost_model import step_rows
from headrace.names import LAKE
from headrace.physical.facts import Facts
from headrace.physical.stage_planner import COMPANION_CHANGE, STATE_CHANGE
from headrace.physical.stages import Compute, Policy, ReadChange, Write
from headrace.physical.step_runs import Skipped, StepRun
from headrace.refresh.explain.operator_words import operators
from headrace.refresh.groups.cycle_refresher import ITERATE
from headrace.refresh.publication_builder import Finished
from headrace.results.refresh_results import Explanation, Mode, RefreshResult, StepInfo

SKIPPED = {
    Skipped.DEAD: "not computed: steps before it had no rows, so that nothing can come of it",
    Skipped.CONDITION: "not computed: what it is for did not occur",
}

TITLES = {STATE_CHANGE: "change of the stored result", COMPANION_CHANGE: "change of the companion"}


def analysis(result: RefreshResult, done: Finished | None) -> Explanation:
    """Explain a refresh by what it did.

    Args:
        result: The refresh.
        done: How it was planned and run; None where nothing was to be read.
    """
    if done is None or result.mode is Mode.NO_CHANGE:
        said = result.detail or "There is nothing new to read since its last refresh, so that no step ran."
        return Explanation(result.name, result.mode, result.reason, (), (("summary", said),))
    steps = steps_of(done)
    sections = (("summary", "\n".join(_summary(result, done, steps))), ("steps", "\n".join(_lines(steps))))
    return Explanation(result.name, result.mode, result.reason, done.facts.details.refusals, sections, steps=steps)


def steps_of(done: Finished) -> tuple[StepInfo, ...]:
    """Return what became of each stage; one that reads another stands behind it."""
    estimated = {} if done.program is None else step_rows(done.facts, done.program)
    estimated = estimated | {str(s.name): float(s.change_rows) for s in done.facts.sources if s.change_rows is not None}
    runs = _in_order(done.outcome.steps)
    titles = [_title(run, done.facts) for run in runs]
    words = {
        run.stage.name: f"step {number} ({title})"
        for number, (run, title) in enumerate(zip(runs, titles, strict=True), 1)
        if isinstance(run.stage, Compute)
    }
    return tuple(
        _step(number, title, run, estimated, words)
        for number, (run, title) in enumerate(zip(runs, titles, strict=True), 1)
    )


def _in_order(runs: Sequence[StepRun]) -> list[StepRun]:
    """Order stages so that each comes after those that it reads."""
    left, found, known = list(runs), list[StepRun](), {r.stage.view for r in runs if not isinstance(r.stage, Write)}
    while left:
        ready = next((r for r in left if not (r.stage.depends_on & known)), left[0])
        left.remove(ready)
        found.append(ready)
        if not isinstance(ready.stage, Write):
            known.discard(ready.stage.view)
    return found


def _step(number: int, title: str, run: StepRun, estimated: Mapping[str, float], words: Mapping[str, str]) -> StepInfo:
    stage = run.stage
    lines = tuple(operators(stage.relation, words)) if isinstance(stage, Compute) else ()
    key = str(stage.source) if isinstance(stage, ReadChange) else stage.name if isinstance(stage, Compute) else ""
    rows = estimated.get(key)
    return StepInfo(
        number,
        title,
        lines,
        None if rows is None else round(rows),
        run.rows,
        run.seconds,
        run.policy.value,
        None if run.skipped is None else SKIPPED[run.skipped],
        tuple(_notes(run)),
    )


def _title(run: StepRun, facts: Facts) -> str:
    match run.stage:
        case ReadChange(source=source):
            return f"change of {source}"
        case Compute(semijoin=(source, columns)):
            return f"rows of {source} near the change, by {', '.join(columns)}"
        case Compute(name=name):
            return TITLES.get(name) or name.replace("_", " ")
        case Write(table=table, strategy=strategy):
            words = {facts.name: "the stored result", facts.companion: "the companion", facts.log: "the change log"}
            how = "append" if table.within(LAKE) == facts.log else strategy.replace("_", " ")
            return f"{words.get(table.within(LAKE), table)}, by {how}"


def _notes(run: StepRun) -> Iterator[str]:
    if run.key_ranges is not None:
        yield f"read within {run.key_ranges} ranges of keys"
    if run.covered is not None:
        yield (
            "all of it was in the change: the source was not read" if run.covered else "not all of it was in the change"
        )
    if run.readers > 1:
        yield f"shared by {run.readers} stream tables"
    if run.policy is Policy.INLINE and run.skipped is None:
        yield "computed within the steps that read it"


def _summary(result: RefreshResult, done: Finished, steps: tuple[StepInfo, ...]) -> Iterator[str]:
    """Yield five lines: how, from what, to what, by which steps, and what took longest."""
    estimate = "" if done.estimate is None else f", estimated {done.estimate:.2f} s"
    yield f"{result.mode} in {result.seconds:.2f} s{estimate}" + (f": {result.detail}" if result.detail else "")
    moved = (f"{s.name} {_about(s.change_rows)} rows" for s in done.facts.sources if s.change is not None)
    yield f"changed: {', '.join(moved) or 'not looked at'}"
    jobs = "" if result.jobs is None else f"; {result.jobs} Spark jobs"
    yield f"result: {result.rows_inserted:,} rows inserted, {result.rows_deleted:,} deleted{jobs}"
    skipped = sum(step.skipped is not None for step in steps)
    kept = {p: sum(s.kept == p.value and s.skipped is None for s in steps) for p in (Policy.LOCAL, Policy.MATERIALIZE)}
    yield (
        f"steps: {len(steps) - skipped} ran ({kept[Policy.LOCAL]} held as local rows, {kept[Policy.MATERIALIZE]} "
        f"materialised), {skipped} skipped"
    )
    took = {f"step {step.number}, {step.title}": step.seconds for step in steps}
    # a cycle is iterated before its members' own steps
    took |= {stage: seconds for stage, seconds in result.stages.items() if stage.startswith(ITERATE)}
    if took:
        longest = max(took, key=lambda each: took[each])
        yield f"longest: {longest}, {took[longest]:.2f} s"


def _about(rows: int | None) -> str:
    return "an unknown number of" if rows is None else f"about {rows:,}"


def _lines(steps: tuple[StepInfo, ...]) -> Iterator[str]:
    for step in steps:
        expected = "" if step.estimated_rows is None else f" (expected {step.estimated_rows:,})"
        rows = "" if step.rows is None else f", {step.rows:,} rows{expected}"
        notes = "".join(f"; {note}" for note in ((step.skipped,) if step.skipped else step.notes))
        yield f"{step.number}. {step.title}: {step.kept}, {step.seconds:.3f} s{rows}{notes}"
        yield from (f"     {line}" for line in step.operators)
