"""Fuses: what counts as a change, and when it is too large."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
import sqlglot
from catalog_kit.samples import ITEMS, ORDERS, REVENUE

from headrace.algebra.schema import Column
from headrace.catalog import HistoryEntry, Outcome, RanAs, Version
from headrace.frontier import Frontier
from headrace.names import WEIGHT
from headrace.physical.facts import Obstacle, SourceFacts
from headrace.reasons import FullReason
from headrace.refresh.fuses.fuse import CHANGED, ENOUGH, FEW_ROWS, Fuse, changed_rows, evidence_from, judge
from headrace.refresh.fuses.fuse_guard import _net
from headrace.schedule.options import Options

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def refreshed(rows: int, outcome: Outcome = Outcome.OK) -> HistoryEntry:
    return HistoryEntry(REVENUE, NOW, NOW, RanAs.DIFFERENTIAL, outcome, metrics={CHANGED: {"shop.orders": rows}})


def history(*rows: int) -> list[HistoryEntry]:
    return [refreshed(count) for count in rows]


def test_rows_in_which_a_zero_gets_a_sign_are_counted() -> None:
    change = f"SELECT CAST('0' AS double) AS x, -1 AS {WEIGHT} UNION ALL SELECT CAST('-0' AS double), 1"
    (sql,) = sqlglot.transpile(_net(change, (Column("x", "double"),)), read="spark", write="duckdb")
    assert len(duckdb.sql(sql).fetchall()) == 2


@pytest.mark.parametrize(
    ("fuse", "rows", "past", "limit"),
    [
        (Fuse(), 10**9, [1] * ENOUGH, None),
        (Fuse(ceiling=100), 100, [], None),
        (Fuse(ceiling=100), 101, [], (100, "fuse_ceiling")),
        (Fuse(factor=10), 10**9, [1] * (ENOUGH - 1), None),  # too little is known
        (Fuse(factor=10), FEW_ROWS, [1] * ENOUGH, None),  # ten times next to nothing
        (Fuse(factor=10), FEW_ROWS + 1, [1] * ENOUGH, (FEW_ROWS, "fuse_factor")),
        (Fuse(factor=2.5), 12_500, [1, 2, 3, 4, 5000], None),  # the largest counts, not the usual
        (Fuse(factor=2.5), 12_501, [1, 2, 3, 4, 5000], (12_500, "fuse_factor")),
        (Fuse(10_000, 2.5), 12_501, [1, 2, 3, 4, 5000], (10_000, "fuse_ceiling")),  # the stricter one
        (Fuse(20_000, 2.5), 30_000, [1, 2, 3, 4, 5000], (12_500, "fuse_factor")),
    ],
)
def test_when_a_change_is_too_large(fuse: Fuse, rows: int, past: list[int], limit: tuple[int, str] | None) -> None:
    found = judge(fuse, {ORDERS: rows}, history(*past))
    assert (None if found is None else (found.limit, found.rule)) == limit


def test_the_evidence_names_sources_and_what_is_usual() -> None:
    evidence = judge(Fuse(ceiling=10), {ITEMS: 1000, ORDERS: 5}, history(3, 5, 100))
    assert evidence is not None
    assert (evidence.rows, evidence.usual, evidence.largest) == (1005, 5, 100)
    assert "1,000 of shop.items, 5 of shop.orders" in evidence.sentence
    assert evidence_from(evidence.as_dict()) == evidence


def test_refreshes_that_failed_or_changed_nothing_are_no_history() -> None:
    past = [refreshed(10**6, Outcome.FAILED), *history(0, 0), *history(*[1] * (ENOUGH - 1))]
    assert judge(Fuse(factor=1), {ORDERS: 10**6}, past) is None


def test_a_table_overrules_the_project() -> None:
    project = Fuse(100, 10.0)
    assert project.of(Options()) == project
    assert project.of(Options(fuse_ceiling=5)) == Fuse(5, 10.0)
    assert project.of(Options(fuse_ceiling=0, fuse_factor=0.0)) == Fuse()


def source(**changes: object) -> SourceFacts:
    values: dict[str, object] = {"name": ORDERS, "before": "b", "after": "a", "version": 5}
    return SourceFacts(**{**values, **changes})  # type: ignore[arg-type]


def test_what_is_measured() -> None:
    at = {ORDERS: Version(ORDERS, 4, 1, 900, NOW, None, None)}
    lost = Obstacle(FullReason.SOURCE_RECREATED, "it was dropped and created again")

    def measured(facts: SourceFacts, frontier: Frontier | None = None) -> dict[object, int]:
        return dict(changed_rows([facts], Frontier({ORDERS: 4}) if frontier is None else frontier, at))

    assert measured(source(change="SELECT", change_rows=7)) == {ORDERS: 7}
    assert measured(source(change="SELECT", change_rows=7), Frontier()) == {}  # the first load is no change
    assert measured(source(version=4)) == {}
    assert measured(source(rows=100, obstacle=lost)) == {ORDERS: 800}  # at least
    assert measured(source(rows=None, obstacle=lost)) == {}
