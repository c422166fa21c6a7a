"""Explains a refresh by printing the objects that would run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from headrace.algebra.relations import Moment, Scan, Stored
from headrace.algebra.text import text as tree_text
from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.compiler.strategies import kept_in_words
from headrace.cost.mode_choice import Choice
from headrace.definitions.details import Details
from headrace.names import TableName, quote
from headrace.physical import stage_planner
from headrace.physical.facts import Facts
from headrace.physical.plan_sql import PlanSql
from headrace.physical.stages import Compute, Publish, ReadChange, Stage, Write
from headrace.results.refresh_results import Explanation, Mode
from headrace.sql.lower import lower

Section = tuple[str, str]


def explain_refresh(
    facts: Facts,
    choice: Choice,
    view: CompiledView | None,
    program: DeltaProgram | None,
    catalogs: frozenset[str],
    only: Mode | None = None,
    functions: str = "",
) -> Explanation:
    """Explain the next refresh of a stream table, in the chosen mode and in the other.

    Args:
        facts: The refresh.
        choice: The mode it would take.
        view: Its compiled query; None when that is not maintained.
        program: By which the change would be followed; None where nothing changed, or nothing was loaded yet.
        catalogs: Catalogs that the session knows.
        only: Leave out all other modes.
        functions: The project's functions that the query calls, in words.
    """
    sources, sizes = frozenset(s.name for s in facts.sources), stage_planner.sizes(facts)
    every = None if view is None else view.delta_program(sources, sizes=sizes)
    modes = {Mode.DIFFERENTIAL: _differential(facts, program, every), Mode.FULL: _full(facts, choice, view, catalogs)}
    shown = sorted(modes, key=lambda mode: mode is not choice.mode)
    sections = [
        *_algebra(view, every, sources, sizes),
        ("functions", functions),
        ("keys", _keys(facts.details)),
        ("ties", _ties(facts.details)),
        ("time", _time(facts.details)),
        ("choice", _choice(facts, choice)),
        ("stages", "nothing to do" if choice.mode is Mode.NO_CHANGE else ""),
        *(section for mode in shown if only in (None, mode) for section in modes[mode]),
    ]
    return _with_sections(explain_choice(facts, choice), sections)


def explain_cycle(facts: Facts, cycle: tuple[TableName, ...], choice: Choice, view: CompiledView) -> Explanation:
    """Explain the next refresh of a member of a cycle.

    Args:
        facts: The member, with its sources outside of the cycle.
        cycle: All members.
        choice: How the cycle is refreshed; where only reading a change tells whether it lost rows, taken to have none.
        view: The member's query.
    """
    program = view.gains_program(frozenset(cycle).intersection(view.sources))
    gains = "" if program is None else "\n".join(f"{s.name}:\n{tree_text(s.relation)}" for s in program.steps)
    sections = (
        ("cycle", f"{' ⇄ '.join(map(str, cycle))}: iterated together until no round gains a row, published together"),
        ("algebra", tree_text(view.tree) if view.tree is not None else ""),
        ("each round (others gained rows)", gains),
        ("choice", _choice(facts, choice)),
    )
    return _with_sections(explain_choice(facts, choice), sections)


def explain_query(details: Details, view: CompiledView | None, functions: str = "") -> Explanation:
    """Explain a query's refresh as a stream table; arguments as for `explain_refresh`."""
    sources = frozenset(use.name for use in details.sources)
    every = None if view is None else view.delta_program(sources)
    sections = [
        *_algebra(view, every, sources),
        ("functions", functions),
        ("keys", _keys(details)),
        ("ties", _ties(details)),
        ("time", _time(details)),
        *_outline(every),
        ("FULL: SQL", f"{details.text.strip()};"),
    ]
    return _with_sections(query_mode(details), sections)


def query_mode(details: Details) -> Explanation:
    """Explain only in which mode a query would be refreshed as a stream table, and why."""
    mode = Mode.DIFFERENTIAL if details.incremental else Mode.FULL
    reason = None if details.incremental else details.refusals[0].code
    return Explanation(None, mode, reason, details.refusals, ())


def explain_choice(facts: Facts, choice: Choice) -> Explanation:
    """Explain only in which mode a stream table would be refreshed, and why."""
    found = Explanation(str(facts.name), choice.mode, choice.reason, facts.details.refusals, ())
    return _with_sections(found, [("choice", _choice(facts, choice))])


def _with_sections(found: Explanation, sections: Iterable[Section]) -> Explanation:
    return replace(found, sections=tuple(section for section in sections if section[1]))


def _algebra(
    view: CompiledView | None,
    every: DeltaProgram | None,
    sources: frozenset[TableName],
    sizes: Mapping[TableName, int] | None = None,
) -> Iterator[Section]:
    """Yield the query, and its change when all sources changed, before and after rewrites."""
    if view is None or view.tree is None:
        return
    yield "algebra", tree_text(view.tree)
    yield "companion", "\n".join(kept_in_words(view.tree, view.views))
    for title, program in (
        ("delta by the rules (all sources changed)", view.delta_by_rules(sources, sizes=sizes)),
        ("delta after the rewrites", every),
    ):
        steps = () if program is None else program.steps
        yield title, "\n".join(f"{step.name}:\n{tree_text(step.relation, 1)}" for step in steps)


def _keys(details: Details) -> str:
    """Return keys of the sources, and what they are good for."""
    known = [f"({', '.join(key)}) of {name}" for name, keys in details.source_keys.items() for key in keys]
    if not known:
        return ""
    use = "the plan rests on them" if details.rests_on_keys else "they change nothing for this query"
    return "\n".join((*known, use))


def _ties(details: Details) -> str:
    """Return how orders are refined, in the full query as well."""
    return "\n".join(str(each) for each in details.refinements if not each.of_time)


def _time(details: Details) -> str:
    """Return which functions read the time of the refresh."""
    return "\n".join(str(each) for each in details.refinements if each.of_time)


def _outline(program: DeltaProgram | None) -> Iterator[Section]:
    """Yield the SQL of a change of all sources, with words for what only a refresh can name."""
    if program is not None:
        text = "\n\n".join(f"-- compute {step.name}\n{lower(step.relation, _in_words)};" for step in program.steps)
        yield "DIFFERENTIAL: SQL (all sources changed)", text


def _in_words(leaf: Scan | Stored) -> str:
    if isinstance(leaf, Stored):
        return quote(leaf.name)
    words = {Moment.AFTER: "{}", Moment.BEFORE: "{} before", Moment.CHANGE: "change of {}"}
    return quote(words[leaf.moment].format(leaf.source))


def _differential(facts: Facts, program: DeltaProgram | None, every: DeltaProgram | None) -> Iterator[Section]:
    """Yield the stages of a program; where no change is known, the SQL of one of all sources."""
    known = all(s.change is not None for s in facts.sources if s.name in facts.changed)
    if program is None or not known:
        yield from _outline(every)
        return
    stages = (*stage_planner.compute_stages(facts, program), *stage_planner.apply_outline(facts, program))
    yield from _stages(Mode.DIFFERENTIAL, facts, stages)


def _full(facts: Facts, choice: Choice, view: CompiledView | None, catalogs: frozenset[str]) -> Iterator[Section]:
    stages = stage_planner.full_stages(facts, view, catalogs, companion=not choice.leaves_companion)
    yield from _stages(Mode.FULL, facts, stages)


def _stages(mode: Mode, facts: Facts, stages: tuple[Stage, ...]) -> Iterator[Section]:
    """List the stages with how each is kept and what it reads; then their SQL."""
    every = (*stages, stage_planner.publish_stage(stage_planner.stored(facts)))
    numbers = {stage.view: i for i, stage in enumerate(every, 1) if isinstance(stage, ReadChange | Compute)}
    yield f"{mode}: stages", "\n".join(f"{i}. {_outlined(stage, numbers)}" for i, stage in enumerate(every, 1))
    sql = PlanSql(facts)
    yield f"{mode}: SQL", "\n\n".join(f"-- {title}\n{text};" for stage in stages for title, text in _titled(stage, sql))


def _outlined(stage: Stage, numbers: Mapping[str, int]) -> str:
    """Write a stage in a line: title, policy, and the numbers of stages it reads."""
    notes = [stage.policy.value] if isinstance(stage, ReadChange | Compute) else []
    if not isinstance(stage, Publish) and (read := sorted(numbers[v] for v in stage.depends_on if v in numbers)):
        notes.append(f"reads {', '.join(map(str, read))}")
    return f"{stage.title} ({'; '.join(notes)})" if notes else stage.title


def _choice(facts: Facts, choice: Choice) -> str:
    lines = [f"mode {choice.mode}" + (f", because {choice.detail}" if choice.detail else "")]
    full, differential = facts.calibration.either
    if choice.full_seconds is not None:
        lines.append(f"FULL by the model: {choice.full_seconds:.2f} s × {full:.2f} (history)")
    if choice.differential_seconds is not None:
        lines.append(f"DIFFERENTIAL by the model: {choice.differential_seconds:.2f} s × {differential:.2f} (history)")
    if facts.companion_behind or choice.leaves_companion:
        now = "is" if facts.companion_behind else "will be"
        lines.append(
            f"the companion {now} behind: FULL does without it, and writes it once before changes are followed"
        )
    if facts.refused is not None:
        lines.append(f"the last refresh was FULL: {facts.refused}")
    for source in facts.sources:
        rows = "?" if source.change_rows is None else f"{source.change_rows:,}"
        moved = "unchanged" if source.change is None else f"about {rows} rows changed"
        lines.append(f"{source.name} at version {source.version}: {moved}")
    return "\n".join(lines)


def _titled(stage: Stage, sql: PlanSql) -> Iterator[tuple[str, str]]:
    """Yield a stage's statements with titles, those of its scan reduction first."""
    match stage:
        case ReadChange():
            yield stage.title, stage.sql
        case Compute():
            reduction = stage.reduction
            if reduction.keys is not None:
                yield f"{stage.title}: ranges of the keys", sql.gaps(stage, reduction.keys[1])
            if reduction.coverage is not None:
                yield f"{stage.title}: whether the change has all of it", sql.is_covered(stage, reduction.coverage)
                yield f"{stage.title}: if it has", sql.covered(stage, reduction.coverage)
            if stage.only_if is not None:
                yield f"{stage.title}: only if this has a row", sql.condition(stage, stage.only_if)
            yield stage.title, sql.query(stage)
        case Write():
            yield from ((stage.title, text) for text in stage.sqls)
