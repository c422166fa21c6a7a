"""Chooses the program by which a refresh follows its change; `explain` shows the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.ivm.program import Key
from headrace.physical import stage_planner
from headrace.physical.facts import Facts
from headrace.physical.program_cache import Asked
from headrace.physical.shared_changes import worth
from headrace.physical.shared_semijoins import shared_semijoins_of
from headrace.statistics.observations import Strategy
from headrace.statistics.session_statistics import SessionStatistics


def with_broadcasts(facts: Facts, statistics: SessionStatistics) -> Facts:
    """Return the facts, without broadcasts where they have failed."""
    return replace(facts, broadcast=not statistics.off(Strategy.BROADCAST, facts.name, by=facts.name))


def program_request(facts: Facts, statistics: SessionStatistics, there: Callable[[str], bool]) -> tuple[Facts, Asked]:
    """Return the facts, with what is read together with other tables, and the program's key.

    Args:
        facts: The refresh.
        statistics: What earlier refreshes observed.
        there: Whether something that several stream tables read is kept under a name.
    """
    facts = worth(facts, there)
    needs = statistics.needs(facts.details.semantics)
    failed = _off(Strategy.READ_TOGETHER, facts, statistics)
    shared = shared_semijoins_of(facts, needs, there, failed)
    facts = replace(facts, shared_semijoins=shared)
    local = not statistics.off(Strategy.LOCAL_ROWS, facts.name, by=facts.name)
    return facts, stage_planner.asked(facts, _off(Strategy.READ_ONCE, facts, statistics), local=local)


def _off(strategy: Strategy, facts: Facts, statistics: SessionStatistics) -> frozenset[Key]:
    """Return sources and columns with which a strategy is not to be tried in this refresh."""
    off = ((s.name, statistics.off(strategy, s.name, by=facts.name)) for s in facts.sources)
    return frozenset((source, columns) for source, each in off for columns in each)
