"""Gathers what `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.catalog import Catalog
from headrace.cost.mode_choice import choose
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.function_versions import changed_functions, functions_section, refuse_missing
from headrace.names import TableName
from headrace.physical.facts import Obstacle
from headrace.physical.shared_changes import SharedChanges
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.define import define, require_differential
from headrace.refresh.definition.early_checks import check_query
from headrace.refresh.definition.refused_queries import as_compiled
from headrace.refresh.explain.explain import explain_choice, explain_cycle, explain_query, explain_refresh, query_mode
from headrace.refresh.explain.pass_report import with_passes
from headrace.refresh.groups.cycle_rules import choose_cycle
from headrace.refresh.program_request import program_request, with_broadcasts
from headrace.results.refresh_results import Explanation, Mode, RefreshMode
from headrace.statistics.session_statistics import SessionStatistics


def explain(
    subject: TableName | str,
    mode: RefreshMode | None,
    *,
    catalog: Catalog,
    session: Session,
    plans: CompiledViews,
    heads: Cut,
    statistics: SessionStatistics,
    changes: SharedChanges,
    passes: bool = False,
) -> Explanation:
    """Explain a stream table (a name) or a query (a text).

    Args:
        subject: What to explain.
        mode: Instead of the table's own refresh mode; FULL and DIFFERENTIAL leave out the other one.
        catalog: The catalog.
        session: The session.
        plans: Compiled views.
        heads: The cut.
        statistics: What earlier refreshes observed.
        changes: What is kept of changes that several stream tables read.
        passes: Report the optimiser's passes instead of algebra, stages and SQL.
    """
    if isinstance(subject, str):
        check_query(subject, catalog, session)
        details, view = define(subject, catalog=catalog, session=session, plans=plans)
        require_differential(details, mode or RefreshMode.AUTO)
        if passes:
            return with_passes(query_mode(details), details, plans)
        return explain_query(details, view, functions_section(details, session))
    states = gather_facts.known_cycle(catalog, subject)
    know = states[subject]
    if not states.keys().isdisjoint(know.table.sources):
        return _cycle(subject, states, plans, heads, passes=passes)
    observed = heads.of(know.table.sources, frozenset(know.streams))
    facts = gather_facts.gather(know, observed, forced=False, tag="explain")
    refuse_missing(subject, facts.details, session)
    if changed := changed_functions(facts.details, session):
        facts = replace(
            facts, obstacle=Obstacle(FullReason.FUNCTION_CHANGED, f"the body of {changed[0]}() was changed")
        )
    if mode is not None:
        require_differential(facts.details, mode)
        facts = replace(facts, refresh_mode=mode)
    view = plans.view(subject, facts.details) if facts.details.incremental else None
    asked = program = None
    if view is not None:
        facts = with_broadcasts(as_compiled(facts, view), statistics)
        if facts.changed:
            runner = session.runner().under(facts.details.semantics) if session.started else None
            facts, asked = program_request(
                facts, statistics, lambda name: runner is not None and changes.is_there(runner, name)
            )
            program = None if facts.first_load else asked.of(view)
    choice = choose(facts, view, program)
    if passes:
        return with_passes(explain_choice(facts, choice), facts.details, plans, facts, asked)
    only = None if mode in (None, RefreshMode.AUTO) else Mode(mode.value)
    called = functions_section(facts.details, session)
    return explain_refresh(facts, choice, view, program, session.catalogs(), only, called)


def _cycle(
    subject: TableName,
    states: Mapping[TableName, gather_facts.TableState],
    plans: CompiledViews,
    heads: Cut,
    *,
    passes: bool,
) -> Explanation:
    facts, views = {}, {}
    for name, state in states.items():
        know = gather_facts.outside(state, states)
        observed = heads.of(know.table.sources, frozenset(know.streams))
        facts[name] = gather_facts.gather(know, observed, forced=False, tag="explain")
        views[name] = plans.view(name, facts[name].details)
    choice = choose_cycle(tuple(facts.values()), views, lambda _: True)
    if passes:
        return with_passes(explain_choice(facts[subject], choice), facts[subject].details, plans)
    return explain_cycle(facts[subject], tuple(states), choice, views[subject])
