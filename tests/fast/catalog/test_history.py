import datetime as dt

from catalog_kit.clock import START
from catalog_kit.samples import ORDERS, REVENUE, TOP, create, entry

from headrace.catalog import Catalog, HistoryEntry, Outcome, RanAs
from headrace.frontier import Frontier


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
