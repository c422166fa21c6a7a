"""Refreshes report what they observed; a strategy that failed stays off for as many refreshes as documented."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from catalog_kit.samples import LAKE, ORDERS, REVENUE, TOP

from headrace.definitions.table_memory import TableMemory
from headrace.ivm.program import Need
from headrace.names import TableName
from headrace.results.refresh_results import Mode
from headrace.semantics import Semantics
from headrace.statistics.failed_strategies import OFF_FOR
from headrace.statistics.observations import ProgramNeeds, RefreshBegan, RefreshRan, Strategy, StrategyFailed
from headrace.statistics.session_statistics import SessionStatistics

KEY = ("k",)
READS = 5
"""So often one refresh asks: choosing a mode, costing it, running it."""


def is_off(statistics: SessionStatistics, by: TableName, strategy: Strategy = Strategy.READ_ONCE) -> bool:
    found = {KEY in statistics.off(strategy, ORDERS, by=by) for _ in range(READS)}
    assert len(found) == 1, "reading changes nothing"
    return found.pop()


def consumers(number: int) -> list[TableName]:
    return [TableName(LAKE, ("shop",), f"reader{i}") for i in range(number)]


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("number", [1, 4, 20])
def test_a_strategy_that_failed_stays_off_for_32_refreshes(number: int, strategy: Strategy) -> None:
    statistics = SessionStatistics()
    tried: dict[TableName, list[bool]] = {name: [] for name in consumers(number)}
    for cycle in range(OFF_FOR + 2):
        for name in tried:
            statistics.observe(RefreshBegan(name))
            tried[name].append(not is_off(statistics, name, strategy))
            if cycle == 0 and tried[name] == [True]:
                statistics.observe(StrategyFailed(strategy, ORDERS, KEY))
    first, *others = tried
    assert tried[first] == [True, *[False] * 32, True]
    assert all(tried[name] == [*[False] * 32, True, True] for name in others), "from the same cycle on"


def test_the_papers_say_how_long() -> None:
    root = Path(__file__).parents[3]
    texts = " ".join(p.read_text(encoding="utf-8") for p in (root / "ARCHITECTURE.md", *(root / "docs").rglob("*.md")))
    said = re.findall(r"next (\d+) (\w+)", " ".join(texts.split()))
    assert set(said) == {(str(OFF_FOR), "refreshes")}


def test_who_tries_again_and_fails_turns_it_off_for_all() -> None:
    statistics = SessionStatistics()
    for name in (REVENUE, TOP):
        statistics.observe(RefreshBegan(name))
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    for _ in range(OFF_FOR + 1):
        statistics.observe(RefreshBegan(REVENUE))
    assert not is_off(statistics, REVENUE)
    assert is_off(statistics, TOP), "which has not been refreshed since"
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    for _ in range(OFF_FOR):
        statistics.observe(RefreshBegan(TOP))
        assert is_off(statistics, TOP)
    statistics.observe(RefreshBegan(TOP))
    assert not is_off(statistics, TOP)
    assert is_off(statistics, REVENUE)


def test_a_table_that_comes_later_leaves_it_out_as_long() -> None:
    statistics = SessionStatistics()
    statistics.observe(RefreshBegan(REVENUE))
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    off = []
    for _ in range(OFF_FOR + 2):
        statistics.observe(RefreshBegan(TOP))
        off.append(is_off(statistics, TOP))
    assert off == [True] * OFF_FOR + [False] * 2


def test_a_table_created_again_counts_from_the_beginning() -> None:
    memory = TableMemory()
    statistics = SessionStatistics(memory)
    for _ in range(500):
        statistics.observe(RefreshBegan(REVENUE))
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    memory.keep_only([TOP])
    off = []
    for _ in range(600):
        statistics.observe(RefreshBegan(REVENUE))
        off.append(is_off(statistics, REVENUE))
    assert off == [True] * OFF_FOR + [False] * (600 - OFF_FOR)


def test_strategies_subjects_and_columns_are_told_apart() -> None:
    statistics = SessionStatistics()
    statistics.observe(RefreshBegan(REVENUE))
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    assert statistics.off(Strategy.READ_ONCE, ORDERS, by=REVENUE) == {KEY}
    assert not statistics.off(Strategy.READ_TOGETHER, ORDERS, by=REVENUE)
    assert not statistics.off(Strategy.READ_ONCE, TOP, by=REVENUE)


def test_refreshes_side_by_side_are_all_counted() -> None:
    statistics = SessionStatistics()
    statistics.observe(StrategyFailed(Strategy.READ_ONCE, ORDERS, KEY))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: statistics.observe(RefreshBegan(REVENUE)), range(OFF_FOR)))
    assert is_off(statistics, REVENUE)
    statistics.observe(RefreshBegan(REVENUE))
    assert not is_off(statistics, REVENUE)


def test_tables_that_are_gone_need_nothing() -> None:
    memory, semantics = TableMemory(), Semantics()
    statistics, need = SessionStatistics(memory), {(ORDERS, KEY): Need(frozenset(), {})}
    for name in (REVENUE, TOP):
        statistics.observe(ProgramNeeds(name, semantics, need))
    assert statistics.needs(semantics) == {REVENUE: need, TOP: need}
    assert not statistics.needs(Semantics(ansi=not semantics.ansi))
    memory.keep_only([TOP])
    assert statistics.needs(semantics) == {TOP: need}


def test_ten_refreshes_of_the_other_mode_warm_up_as_one() -> None:
    statistics = SessionStatistics()
    for _ in range(20):
        statistics.observe(RefreshRan(Mode.FULL))
    assert statistics.warmth(Mode.FULL) == 20
    assert statistics.warmth(Mode.DIFFERENTIAL) == 2
