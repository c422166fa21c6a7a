"""Gathers what `explain` prints."""

from __future__ import annotations

from dataclasses import replace

from headrace.catalog import Catalog
from headrace.engine import gather, plan
from headrace.engine.calls import changed_functions, functions_section, refuse_missing
from headrace.engine.choose import choose, obstacle
from headrace.engine.common import worth
from headrace.engine.cycles import choose_cycle
from headrace.engine.define import define, require_differential
from headrace.engine.explain import explain_cycle, explain_query, explain_refresh
from headrace.engine.facts import Obstacle
from headrace.engine.heads import Heads
from headrace.engine.plans import Plans
from headrace.engine.ports import Session
from headrace.engine.refused import as_compiled
from headrace.engine.results import Explanation, Mode, RefreshMode
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.reasons import FullReason


def explain(
    subject: TableName | str,
    mode: RefreshMode | None,
    *,
    catalog: Catalog,
    session: Session,
    plans: Plans,
    heads: Heads,
) -> Explanation:
    """Explain a stream table (a name) or a query (a text).

    Args:
        subject: What to explain.
        mode: Instead of the table's own refresh mode; FULL and DIFFERENTIAL leave out the other one.
        catalog: The catalog.
        session: The session.
        plans: Compiled views.
        heads: The cut.
    """
    if isinstance(subject, str):
        details, view = define(subject, catalog=catalog, session=session, plans=plans)
        require_differential(details, mode or RefreshMode.AUTO)
        return explain_query(details, view, functions_section(details, session))
    know = gather.known(catalog, subject)
    cycle = Dag({n: t.sources for n, t in know.streams.items()}).component(subject)
    if cycle:
        return _cycle(subject, cycle, catalog=catalog, plans=plans, heads=heads)
    observed = heads.of(know.table.sources, frozenset(know.streams))
    facts = worth(gather.gather(know, observed, forced=False, tag="explain"))
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
    program = plan.asked(facts).of(view) if view is not None and facts.changed and obstacle(facts) is None else None
    return explain_refresh(facts, choose(facts, view, program), view, session.catalogs(), only, called)


def _cycle(
    subject: TableName, cycle: tuple[TableName, ...], *, catalog: Catalog, plans: Plans, heads: Heads
) -> Explanation:
    facts, views = {}, {}
    for name in cycle:
        know = gather.outside(gather.known(catalog, name), cycle)
        observed = heads.of(know.table.sources, frozenset(know.streams))
        facts[name] = gather.gather(know, observed, forced=False, tag="explain")
        views[name] = plans.view(name, facts[name].details)
    choice = choose_cycle(tuple(facts.values()), views, lambda _: True)
    return explain_cycle(facts[subject], cycle, choice, views[subject])
