"""Gathers what `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.catalog import Catalog
from headrace.cost.mode_choice import choose, obstacle
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.function_versions import changed_functions, functions_section, refuse_missing
from headrace.names import TableName
from headrace.physical import stage_planner
from headrace.physical.facts import Obstacle
from headrace.physical.shared_changes import worth
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.define import define, require_differential
from headrace.refresh.definition.early_checks import check_query
from headrace.refresh.definition.refused_queries import as_compiled
from headrace.refresh.explain.explain import explain_cycle, explain_query, explain_refresh
from headrace.refresh.explain.pass_report import with_passes
from headrace.refresh.groups.cycle_rules import choose_cycle
from headrace.results.refresh_results import Explanation, Mode, RefreshMode


def explain(
    subject: TableName | str,
    mode: RefreshMode | None,
    *,
    catalog: Catalog,
    session: Session,
    plans: CompiledViews,
    heads: Cut,
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
        passes: Report the optimiser's passes instead of algebra, stages and SQL.
    """
    if isinstance(subject, str):
        check_query(subject, catalog, session)
        details, view = define(subject, catalog=catalog, session=session, plans=plans)
        require_differential(details, mode or RefreshMode.AUTO)
        found = explain_query(details, view, functions_section(details, session))
        return with_passes(found, details, plans, None) if passes else found
    states = gather_facts.known_cycle(catalog, subject)
    know = states[subject]
    if not states.keys().isdisjoint(know.table.sources):
        return _cycle(subject, states, plans, heads, passes=passes)
    observed = heads.of(know.table.sources, frozenset(know.streams))
    facts = worth(gather_facts.gather(know, observed, forced=False, tag="explain"))
    refuse_missing(subject, facts.details, session)
    if changed := changed_functions(facts.details, session):
        facts = replace(
            facts, obstacle=Obstacle(FullReason.FUNCTION_CHANGED, f"the body of {changed[0]}() was changed")
        )
    if mode is not None:
        require_differential(facts.details, mode)
        facts = replace(facts, refresh_mode=mode)
    view = plans.view(subject, facts.details) if facts.details.incremental else None
    facts = as_compiled(facts, view) if view is not None else facts
    only = None if mode in (None, RefreshMode.AUTO) else Mode(mode.value)
    called = functions_section(facts.details, session)
    program = (
        stage_planner.asked(facts).of(view) if view is not None and facts.changed and obstacle(facts) is None else None
    )
    found = explain_refresh(facts, choose(facts, view, program), view, session.catalogs(), only, called)
    return with_passes(found, facts.details, plans, facts) if passes else found


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
    found = explain_cycle(facts[subject], tuple(states), choice, views[subject])
    return with_passes(found, facts[subject].details, plans, None) if passes else found
