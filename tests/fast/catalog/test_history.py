import datetime as dt
from dataclasses import replace

import pytest
from catalog_kit.clock import START
from catalog_kit.samples import ORDERS, REVENUE, TOP, create, entry, lake, refresh, see

from headrace.catalog import Catalog, HistoryEntry, Outcome, RanAs
from headrace.catalog.state import history, old_history
from headrace.frontier import Frontier

GONE = lake("shop.gone")


def test_everything_about_a_refresh_is_kept(catalog: Catalog) -> None:
    made = create(catalog)
    failed = HistoryEntry(
        stream=REVENUE,
        started_at=START,
        finished_at=START + dt.timedelta(seconds=2.5),
        mode=RanAs.DIFFERENTIAL,
        outcome=Outcome.FAILED,
        reason="COST",
        reason_detail="cheaper",
        rows_inserted=2**40,
        rows_deleted=3,
        rows_after=4,
        stages={"compute": 1.5, "apply": 0.25, "a": 0.1},
        metrics={"jobs": 3, "bytes": 2**50},
        frontier=Frontier({ORDERS: 7}),
        error_code="DIVIDE_BY_ZERO",
        error_message="Division by zero\nin line 3",
    )
    catalog.record((failed,))
    (kept,) = catalog.history(REVENUE)
    assert (kept.id, kept.stream_id, kept.publication_id, kept.seconds) == (1, made.id, None, 2.5)
    assert list(kept.stages) == ["compute", "apply", "a"]
    for field in failed.__slots__:
        if field not in ("id", "stream_id"):
            assert getattr(kept, field) == getattr(failed, field), field


def test_newest_first_with_a_limit_and_by_name(catalog: Catalog) -> None:
    create(catalog)
    catalog.record([entry(REVENUE), entry(TOP), entry(REVENUE, reason="COST")])
    assert [e.id for e in catalog.history()] == [3, 2, 1]
    assert [e.id for e in catalog.history(limit=2)] == [3, 2]
    assert [e.id for e in catalog.history(REVENUE)] == [3, 1]
    last = catalog.last_refreshes()
    assert {n: e.reason for n, e in last.items()} == {REVENUE: "COST"}
    catalog.record([])


def test_what_ended_long_ago_is_forgotten_but_for_the_newest_of_each_table(
    catalog: Catalog, iceberg, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_history, "AT_ONCE", 3)
    monkeypatch.setattr(old_history, "PAST", 2)
    monkeypatch.setattr(history, "PAST", 2)
    create(catalog)
    create(catalog, TOP)
    see(catalog, ORDERS)
    for number in (1, 2, 3):
        catalog.publish(refresh(catalog, iceberg, number, REVENUE))
    catalog.record([entry(REVENUE), entry(REVENUE)])  # ended well, and published nothing
    catalog.record([entry(REVENUE, outcome=Outcome.FAILED) for _ in range(3)])
    catalog.record([entry(TOP), entry(GONE), entry(GONE)])
    with catalog.reading() as reader:
        past, last = reader.past_frontiers(REVENUE), reader.last_refreshes()
    ended = catalog.history(TOP)[0].finished_at
    assert catalog.forget_history(ended) == 0
    later = ended + dt.timedelta(seconds=1)
    assert catalog.forget_history(later, dry_run=True) == 4
    assert len(catalog.history()) == 11
    assert catalog.forget_history(later) == 4
    assert [e.id for e in catalog.history(REVENUE)] == [8, 7, 5, 4, 3, 2]
    assert [e.stream for e in catalog.history(limit=1)] == [TOP]
    with catalog.reading() as reader:
        assert (reader.past_frontiers(REVENUE), reader.last_refreshes()) == (past, last)
    assert catalog.forget_history(later) == 0


def test_forgetting_ends_where_all_are_young_and_not_at_one(
    catalog: Catalog, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_history, "AT_ONCE", 2)
    young = replace(entry(GONE), finished_at=START + dt.timedelta(days=9))
    for each in (entry(GONE), young, entry(GONE), entry(GONE), young, young, entry(GONE)):
        catalog.record([each])
    assert catalog.forget_history(START + dt.timedelta(days=1)) == 3
    assert [e.id for e in catalog.history()] == [7, 6, 5, 2]
