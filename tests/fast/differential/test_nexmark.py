"""Nexmark's queries through random histories: all maintained, all equal to their queries after each window."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from kit import nexmark
from kit.case import Case, Row
from kit.duck import DuckExecutor
from kit.long_tests import LONG
from kit.maintained import Maintained, replay

EXECUTOR = DuckExecutor()
SEEDS = range(30 if LONG else 2)


@pytest.mark.parametrize("name", nexmark.QUERIES)
def test_a_query_follows_its_auctions(name: str) -> None:
    moved = 0
    for seed in SEEDS:
        moved += sum(map(bool, _changes(name, Random(f"{name} {seed}"))))
        if moved > 1 and not LONG:
            break
    assert moved > 1, "a result that never changes proves nothing"


def _changes(name: str, random: Random) -> list[Counter[Row]]:
    tables = nexmark.tables(random)
    case = Case(nexmark.QUERIES[name], tables, nexmark.windows(tables, 6, random))
    view = Maintained(EXECUTOR, case)
    assert view.view.refusals == ()
    return [view.step(window) for window in case.windows]


def test_everything_can_be_taken_away_again() -> None:
    random = Random(1)
    tables = nexmark.tables(random)
    for query in nexmark.QUERIES.values():
        replay(EXECUTOR, Case(query, tables, nexmark.windows(tables, 1, random)))
