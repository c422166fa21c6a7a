"""Which stream tables wait for a new layout, and which are loaded in place."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.samples import create, lake, see

from headrace.catalog import Catalog, FrontierMove, Green, NewVersion, Observation, Publication
from headrace.compiler.layout import LAYOUT
from headrace.definitions.details import Details, to_json
from headrace.deploy.unattended.layout_progress import layout_progress
from headrace.errors import EnvironmentFault
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.layout_waits import is_layout_deployment, refuse_waiting, waiting_in
from headrace.refresh.groups.grouping import Defaults
from headrace.results.refresh_results import RefreshMode
from headrace.schedule import parse_schedule
from headrace.scheduler.policy.plan_cycle import holds, plan_cycle
from headrace.scheduler.scheduler_state import SchedulerState, read_scheduler_state
from headrace.semantics import Semantics

ORDERS, TOTALS, TOP = lake("shop.orders"), lake("shop.totals"), lake("shop.top")
DETAILS = Details("SELECT 1", (), Semantics(), (), (), {}, (), None, {})
LIMIT = Defaults(layout_limit=100)
DEPLOYMENT = f"layout_{LAYOUT}_shop__totals"


def stored(
    catalog: Catalog, name: TableName, *sources: TableName, rows: int = 101, layout: int = 1, **more: object
) -> None:
    """Create a stream table that rules of a layout have stored, and load it."""
    details = {**to_json(DETAILS), "layout": layout, **{k: more.pop(k) for k in ("cyclic",) if k in more}}
    create(catalog, name, *sources, details=details, **more)
    versions = {n: v.version for n, v in catalog.newest_versions().items()}
    move = FrontierMove(name, Frontier({source: versions[source] for source in sources}))
    catalog.publish(Publication(versions=(NewVersion(name, 0, 1, rows),), frontiers=(move,)))


@pytest.fixture
def seen(timed: Catalog) -> Catalog:
    see(timed, ORDERS)
    return timed


def test_large_tables_of_an_older_layout_wait(seen: Catalog) -> None:
    stored(seen, TOTALS, ORDERS)
    stored(seen, TOP, TOTALS, rows=1, layout=LAYOUT)
    assert waiting_in(seen, LIMIT) == {TOTALS: DEPLOYMENT}
    assert waiting_in(seen, Defaults(layout_limit=101)) == {}
    assert waiting_in(seen, Defaults()) == {}
    with pytest.raises(EnvironmentFault, match="LAYOUT_AWAITED"):
        refuse_waiting([TOP, TOTALS], waiting_in(seen, LIMIT))


def test_a_small_table_over_a_large_source_waits(seen: Catalog) -> None:
    stored(seen, TOTALS, ORDERS, rows=1)
    assert waiting_in(seen, LIMIT) == {}
    seen.observe([Observation(ORDERS, 2, "uuid", row_count=101)])
    assert waiting_in(seen, LIMIT) == {TOTALS: DEPLOYMENT}


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.totals", "b.totals"), ("a_b.c", "a.b_c"), ("a.ä", "a.ö"), (f"a.{'t' * 63}x", f"a.{'t' * 63}y")],
)
def test_units_have_deployments_of_their_own(seen: Catalog, one: str, other: str) -> None:
    for name in (one, other):
        stored(seen, lake(name), ORDERS)
    names = set(waiting_in(seen, LIMIT).values())
    assert len(names) == 2
    assert all(is_layout_deployment(name) and len(name) <= 63 for name in names)


def test_a_group_waits_as_a_whole(seen: Catalog) -> None:
    stored(seen, TOP, ORDERS, rows=1, layout=LAYOUT, options={"refresh_group": "both"})
    stored(seen, TOTALS, ORDERS, options={"refresh_group": "both"})
    assert waiting_in(seen, LIMIT) == dict.fromkeys((TOP, TOTALS), DEPLOYMENT)


def test_what_cannot_be_exchanged_or_is_recomputed_anyway_is_loaded_in_place(seen: Catalog) -> None:
    stored(seen, lake("shop.recomputed"), ORDERS, refresh_mode=RefreshMode.FULL)
    stored(seen, lake("shop.cyclic"), ORDERS, cyclic=True)
    stored(seen, TOTALS, ORDERS)
    create(seen, lake("shop__green.totals"), ORDERS, details=to_json(dataclasses.replace(DETAILS, deployment="green")))
    beside = Green(lake("shop__green.totals"), "green", TOTALS, {}, dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    seen.publish(Publication(greens=(beside,)))
    assert waiting_in(seen, LIMIT) == {}


def test_schedulers_leave_it_alone_until_then_with_what_reads_it(seen: Catalog, clock: ManualClock) -> None:
    stored(seen, TOTALS, ORDERS, schedule="ON CHANGE")
    stored(seen, TOP, TOTALS, layout=LAYOUT, schedule="ON CHANGE")
    see(seen, ORDERS, 2)
    clock.advance(60)

    def state() -> SchedulerState:
        return read_scheduler_state(
            seen, Cut(seen, lambda _: None), LIMIT, parse_schedule("ON CHANGE"), lambda *_: None
        )

    assert state().layouts == (TOTALS,)
    assert not plan_cycle(state(), clock.now()).wanted
    reason = f"waiting for its new layout: deployment {DEPLOYMENT}"
    assert {unit: hold.reason for unit, hold in holds(state(), clock.now()).items()} == dict.fromkeys(
        (TOTALS, TOP), reason
    )
    assert layout_progress(seen, [DEPLOYMENT], clock.now()) == {DEPLOYMENT: "not made yet"}
    seen.pause([TOTALS])
    assert state().layouts == ()
    seen.unpause([TOTALS])
    seen.alter_stream_table(TOTALS, schedule="MANUAL")
    assert state().layouts == ()
    assert not holds(state(), clock.now())


def test_schedulers_leave_to_a_newer_version_what_it_has_stored(seen: Catalog, clock: ManualClock) -> None:
    stored(seen, TOTALS, ORDERS, layout=LAYOUT + 1, schedule="ON CHANGE")
    stored(seen, TOP, TOTALS, layout=LAYOUT, schedule="ON CHANGE")
    see(seen, ORDERS, 2)
    clock.advance(60)
    assert waiting_in(seen, LIMIT) == {}
    state = read_scheduler_state(seen, Cut(seen, lambda _: None), LIMIT, parse_schedule("ON CHANGE"), lambda *_: None)
    assert state.layouts == ()
    assert not plan_cycle(state, clock.now()).wanted
    reason = "stored by a newer version of Headrace: upgrade this one"
    assert {unit: hold.reason for unit, hold in holds(state, clock.now()).items()} == dict.fromkeys(
        (TOTALS, TOP), reason
    )
