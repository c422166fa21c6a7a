"""Groups that are refreshed by hand, in threads of their own; no Spark computes."""

import time

import pytest
from kit.pipelines import PublishedGroup, PublishingWorker, define, failing, full, roots

from headrace.api.schedules.refresh_together import refresh_together
from headrace.catalog import resource_of
from headrace.errors import HeadraceError
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.refresh.held_leases import holding_leases
from headrace.scheduler.policy.unit_tasks import unit_tasks


@pytest.fixture
def worker(lake_, catalog):
    lake_.base("s.a")
    define(catalog, "b: a; c: a; p: a; d: b c p", b={"pool": "narrow"}, c={"pool": "narrow"})
    return PublishingWorker(lake_, catalog)


def refreshed(worker, slots=4):
    cut = grouping({t.name: t for t in worker.catalog.stream_tables()}, Defaults())
    members = cut.members(full("d"))
    return refresh_together(
        lambda: PublishedGroup(worker, members, worker.heads()),
        full("d"),
        unit_tasks(cut),
        slots=slots,
        quotas={"narrow": 1},
        cancel=worker.cancel,
    )


@pytest.mark.parametrize(("slots", "at_once"), [(4, 2), (1, 1)])
def test_members_run_side_by_side(lake_, catalog, worker, slots, at_once):
    worker.seconds = lambda name: 0.2 if name.table in "bcp" else 0.0
    assert {r.name for r in refreshed(worker, slots)} == {"s.b", "s.c", "s.p", "s.d"}
    assert worker.most_at_once == at_once  # p beside b or c, which share a pool of one
    assert worker.ran == [("b", "c", "p", "d")]
    assert len({tuple(sorted(r["a"])) for r in roots(lake_, catalog).values()}) == 1


def test_a_failure_ends_them_all_and_nothing_is_published(lake_, catalog, worker):
    worker.fails, worker.seconds = failing("p"), lambda name: 60.0 if name.table == "b" else 0.0
    begin = time.monotonic()
    with pytest.raises(HeadraceError, match="p was made to fail"):
        refreshed(worker)
    assert time.monotonic() - begin < 30  # b was cancelled
    assert roots(lake_, catalog) == {}
    with holding_leases(catalog, [resource_of(full(name)) for name in "bcpd"]):
        pass


def test_an_interrupt_ends_them_all(catalog, worker):
    stop, calls = worker.cancel, []

    def interrupted(names):
        calls.append(names)
        if len(calls) == 1:
            raise KeyboardInterrupt
        stop(names)

    worker.fails, worker.seconds = failing("p"), lambda name: 60.0 if name.table == "b" else 0.0
    worker.cancel = interrupted
    with pytest.raises(KeyboardInterrupt):
        refreshed(worker)
    assert len(calls) > 1
    with holding_leases(catalog, [resource_of(full(name)) for name in "bcpd"]):
        pass
