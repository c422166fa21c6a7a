"""Queries of each kind, followed through short histories: two of each kind, or all of them (`HEADRACE_TEST_LONG`)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from kit.duck import DuckExecutor
from kit.kind_histories import history
from kit.long_tests import LONG
from kit.maintained import Maintained
from kit.query_kinds import Query, queries

EXECUTOR = DuckExecutor()
SEEDS = range(5) if LONG else range(1)


def _chosen() -> Iterator[Query]:
    played = [query for query in queries() if query.played]
    for kind in dict.fromkeys(query.kind for query in played):
        of_kind = [query for query in played if query.kind == kind]
        yield from of_kind if LONG else Random(kind).sample(of_kind, 2)


@pytest.mark.parametrize("query", [*_chosen()], ids=lambda query: query.text[:60])
def test_a_query_stays_equal(query: Query) -> None:
    for seed in SEEDS:
        case = history(query, seed)
        view = Maintained(EXECUTOR, case)
        for window in case.windows:
            view.step(window)
