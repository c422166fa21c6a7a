"""Explains how a stream table or a query is refreshed, by printing the very objects that would run."""

from __future__ import annotations

from headrace.algebra.text import text as tree_text
from headrace.compiler import CompiledView
from headrace.engine import plan
from headrace.engine.choose import Choice
from headrace.engine.details import Details
from headrace.engine.facts import Facts
from headrace.engine.results import Explanation, Mode
from headrace.engine.stages import Stage
from headrace.names import TableName


def explain_refresh(
    facts: Facts, choice: Choice, view: CompiledView | None, catalogs: frozenset[str], functions: str = ""
) -> Explanation:
    """How the next refresh of a stream table would run.

    Args:
        facts: The refresh.
        choice: Its mode.
        view: The compiled query, if it is maintained.
        catalogs: Catalogs the session knows.
        functions: The project's functions that the query calls, in words.
    """
    stages = _stages(facts, choice, view, catalogs)
    sections = [
        *_algebra(view, frozenset(s.name for s in facts.sources)),
        ("functions", functions),
        ("keys", _keys(facts.details)),
        ("choice", _choice(facts, choice)),
        ("stages", "\n".join(f"{i}. {stage.title}" for i, stage in enumerate(stages, 1)) or "nothing to do"),
        ("SQL", "\n\n".join(f"-- {s.title}\n{sql};" for s in stages for sql in s.statements)),
    ]
    return Explanation(
        str(facts.name), choice.mode, choice.reason, facts.details.refusals, tuple(s for s in sections if s[1])
    )


def explain_query(details: Details, view: CompiledView | None, functions: str = "") -> Explanation:
    """How a query would be refreshed, were it a stream table; arguments as for `explain_refresh`."""
    mode = Mode.DIFFERENTIAL if details.incremental else Mode.FULL
    reason = None if details.incremental else details.refusals[0].code
    sources = frozenset(use.name for use in details.sources)
    sections = [*_algebra(view, sources), ("functions", functions), ("keys", _keys(details))]
    return Explanation(None, mode, reason, details.refusals, tuple(s for s in sections if s[1]))


def _algebra(view: CompiledView | None, sources: frozenset[TableName]) -> list[tuple[str, str]]:
    if view is None or view.tree is None:
        return []
    program = view.delta_program(sources)
    delta = "" if program is None else "\n".join(f"{s.name}:\n{tree_text(s.relation)}" for s in program.steps)
    return [("algebra", tree_text(view.tree)), ("delta (all sources changed)", delta)]


def _keys(details: Details) -> str:
    """Keys of the sources, and what they are good for."""
    known = [f"({', '.join(key)}) of {name}" for name, keys in details.source_keys.items() for key in keys]
    if not known:
        return ""
    use = "the plan rests on them" if details.rests_on_keys else "they change nothing for this query"
    return "\n".join((*known, use))


def _stages(facts: Facts, choice: Choice, view: CompiledView | None, catalogs: frozenset[str]) -> tuple[Stage, ...]:
    if choice.mode is Mode.FULL:
        return (*plan.full_stages(facts, view, catalogs), plan.publish_stage(facts, plan.stored(facts)))
    program = plan.delta(facts, view) if view is not None and choice.mode is Mode.DIFFERENTIAL else None
    if program is None:
        return ()
    return (
        *plan.compute_stages(facts, program),
        *plan.apply_outline(facts, program),
        plan.publish_stage(facts, plan.stored(facts)),
    )


def _choice(facts: Facts, choice: Choice) -> str:
    lines = [f"mode {choice.mode}" + (f", because {choice.detail}" if choice.detail else "")]
    if choice.full_seconds is not None:
        lines.append(f"FULL by the model: {choice.full_seconds:.2f} s × {facts.pace.full or 1.0:.2f} (history)")
    if choice.differential_seconds is not None:
        seconds, pace = choice.differential_seconds, facts.pace.differential or 1.0
        lines.append(f"DIFFERENTIAL by the model: {seconds:.2f} s × {pace:.2f} (history)")
    for source in facts.sources:
        rows = "?" if source.change_rows is None else f"{source.change_rows:,}"
        moved = "unchanged" if source.change is None else f"about {rows} rows changed"
        lines.append(f"{source.name} at version {source.version}: {moved}")
    return "\n".join(lines)
