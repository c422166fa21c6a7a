"""Real threads, each with connections of its own, as processes have."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import sqlalchemy as sa
from catalog_kit.clock import ManualClock
from catalog_kit.iceberg import CommitFailed, Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, TTL, attempt, create, define, lake, refresh, see
from catalog_kit.stream_tables import create_stream_table

from headrace.catalog import Catalog, FrontierMove, Lease, NewVersion, Publication, resource_of
from headrace.catalog.publishing.versions import stand_in_line
from headrace.errors import HeadraceError
from headrace.frontier import Frontier


def at_once(url: str, count: int, work: Callable[[Catalog, int], object]) -> list[object]:
    """Run work in threads that begin together; an expected failure counts by its code."""
    gate = threading.Barrier(count, timeout=60)

    def run(number: int) -> object:
        with Catalog.open(url, clock=ManualClock()) as catalog:
            catalog.leases()
            gate.wait()
            result = attempt(lambda: work(catalog, number))
            return result.code if isinstance(result, HeadraceError) else result

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_of_many_acquirers_one_wins(url: str) -> None:
    results = at_once(url, 6, lambda catalog, n: catalog.acquire(["a", "b"], f"owner{n}", TTL))
    winners = [r for r in results if not isinstance(r, str)]
    assert len(winners) == 1
    assert [r for r in results if isinstance(r, str)] == ["LEASE_HELD"] * 5
    with Catalog.open(url) as catalog:
        assert tuple(catalog.leases()) == winners[0]


def test_overlapping_sets_in_any_order_never_deadlock(url: str) -> None:
    resources = ["a", "b", "c", "d"]

    def work(catalog: Catalog, number: int) -> int:
        mine, taken = resources[number % 4 :] + resources[: number % 4], 0
        for _ in range(8):
            leases = attempt(lambda: catalog.acquire(mine[:3], f"owner{number}", TTL))
            if isinstance(leases, HeadraceError):
                assert leases.code == "LEASE_HELD"
                continue
            taken += 1
            catalog.release(leases)
        return taken

    taken = at_once(url, 4, work)
    with Catalog.open(url) as catalog:
        assert sum(x.token for x in catalog.leases()) == 3 * sum(map(int, taken))


def test_an_expired_lease_is_taken_over_once(url: str, catalog: Catalog) -> None:
    early = ManualClock()
    early.advance(-3600)
    with Catalog.open(url, clock=early) as sleeper:
        sleeper.acquire(["a"], "sleeper", TTL)
    results = at_once(url, 5, lambda catalog, n: catalog.acquire(["a"], f"owner{n}", TTL))
    (winner,) = [r for r in results if not isinstance(r, str)]
    assert [x.token for x in winner] == [2]


def test_a_source_is_numbered_once_by_many_observers(url: str, catalog: Catalog) -> None:
    def work(other: Catalog, _number: int) -> object:
        for snapshot in range(10):
            see(other, ORDERS, snapshot)
            see(other, ITEMS, 7)

    assert not any(at_once(url, 4, work))
    numbers = [v.version for v in catalog.versions(ORDERS)]
    assert numbers == list(range(len(numbers)))
    assert len(catalog.versions(ITEMS)) == 1


def test_a_name_is_created_once(url: str, catalog: Catalog) -> None:
    results = at_once(url, 5, lambda other, _n: create(other))
    assert sorted(str(r) for r in results if isinstance(r, str)) == ["STREAM_TABLE_EXISTS"] * 4
    assert catalog.stream_table(REVENUE).sources == (ORDERS,)


def test_publishers_observers_and_definers_do_not_deadlock(url: str, catalog: Catalog) -> None:
    streams = [lake(f"shop.s{i}") for i in range(4)]
    for stream in streams:
        create(catalog, stream, ORDERS, ITEMS)
    see(catalog, ORDERS)
    see(catalog, ITEMS)

    def work(other: Catalog, number: int) -> object:
        for step in range(6):
            if number == 3:
                other.observe([])
                see(other, ITEMS, step), see(other, ORDERS, step)
            elif number == 4:
                other.alter_stream_table(streams[step % 4], schedule=f"{step} minutes")
                create_stream_table(other, define(lake(f"shop.new{step}"), ITEMS, ORDERS))
            else:
                publish_next(other, streams[number : number + 2])
        return None

    assert at_once(url, 5, work) == [None] * 5
    assert [p.id for p in catalog.publications()] == list(range(18, 0, -1))
    times = [p.published_at for p in catalog.publications()]
    assert times == sorted(times, reverse=True)


def publish_next(catalog: Catalog, streams: list) -> None:
    """Publish the next version of two stream tables under a lease, trying again while another works on one."""
    while True:
        leases = attempt(lambda: catalog.acquire([resource_of(s) for s in streams], "x", TTL))
        if isinstance(leases, HeadraceError):
            assert leases.code == "LEASE_HELD"
            continue
        heads = catalog.newest_versions()
        versions = [NewVersion(s, heads[s].version + 1 if s in heads else 0, 1) for s in streams]
        frontier = Frontier({s: heads[s].version for s in (ORDERS, ITEMS)})
        moves = tuple(FrontierMove(s, frontier) for s in streams)
        catalog.publish(Publication(versions=tuple(versions), frontiers=moves, leases=leases))
        catalog.release(leases)
        return


@pytest.mark.parametrize("stale", [True, False])
def test_the_old_owner_of_a_lease_cannot_publish(
    url: str, catalog: Catalog, clock: ManualClock, iceberg: Iceberg, stale: bool
) -> None:
    """The sleeper wakes up while, or after, the new owner publishes."""
    create(catalog)
    see(catalog)
    old = catalog.acquire([resource_of(REVENUE)], "sleeper", TTL)
    sleepers = refresh(catalog, iceberg, 1, REVENUE, leases=old)
    clock.advance(TTL.total_seconds() + 1)
    new = catalog.acquire([resource_of(REVENUE)], "new", TTL)
    catalog.reset_staging([REVENUE], held=new)
    owners = refresh(catalog, iceberg, 2, REVENUE, leases=new)
    if stale:
        catalog.publish(owners)
        with pytest.raises(HeadraceError, match="LEASE_LOST"):
            catalog.publish(sleepers)
    else:
        both = at_once(url, 2, lambda other, n: other.publish((sleepers, owners)[n]))
        assert both[0] == "LEASE_LOST"
    assert iceberg.pointer(REVENUE) == "revenue-2"
    assert len(catalog.versions(REVENUE)) == 1


def test_a_foreign_commit_races_with_publishing_and_one_of_them_loses(
    url: str, catalog: Catalog, iceberg: Iceberg
) -> None:
    create(catalog)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 0, REVENUE))
    for number in range(1, 8):
        publication = refresh(catalog, iceberg, number, REVENUE)
        expected = publication.swaps[0].expected

        def work(other: Catalog, who: int, publication=publication, expected=expected, number=number) -> object:
            if who == 0:
                return other.publish(publication) and "published"
            try:
                iceberg.commit(REVENUE, f"foreign-{number}", catalog="lake", expected=expected)
            except CommitFailed:
                return "CommitFailed"
            return "committed"

        results = at_once(url, 2, work)
        found = iceberg.pointer(REVENUE)
        assert results in (["published", "CommitFailed"], ["FOREIGN_WRITER", "committed"])
        assert found == (f"revenue-{number}" if results[0] == "published" else f"foreign-{number}")
        if results[0] != "published":
            return


def test_nobody_can_begin_to_write_while_staging_is_reset(url: str, catalog: Catalog, iceberg: Iceberg) -> None:
    create(catalog)
    create(catalog, TOP)
    see(catalog)

    def work(other: Catalog, number: int) -> object:
        if number == 0:
            for _ in range(10):
                other.reset_staging()
            return None
        for step in range(5):
            leases = acquired(other, TOP if number == 1 else REVENUE)
            name = TOP if number == 1 else REVENUE
            other.publish(refresh(other, iceberg, step, name, leases=leases))
            other.release(leases)
        return None

    assert at_once(url, 3, work) == [None] * 3
    assert (catalog.frontier(TOP), len(catalog.versions(TOP))) == (Frontier({ORDERS: 0}), 5)


def acquired(catalog: Catalog, name) -> tuple[Lease, ...]:
    return catalog.acquire([resource_of(name)], "x", TTL)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("lock", "waits"),
    [
        ("LOCK TABLE hr_publication IN SHARE UPDATE EXCLUSIVE MODE", False),  # as VACUUM and ANALYZE do
        ("LOCK TABLE hr_publication IN SHARE ROW EXCLUSIVE MODE", True),  # as publishers of former releases do
        (None, True),
    ],
    ids=["vacuum", "former release", "publisher"],
)
def test_publishers_wait_for_each_other_and_not_for_the_databases_housekeeping(
    url: str, catalog: Catalog, lock: str | None, waits: bool
) -> None:
    create(catalog)
    see(catalog, ORDERS)
    see(catalog, ITEMS)
    engine = sa.create_engine(url)
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as other:
            if lock is None:
                stand_in_line(other)
            else:
                other.exec_driver_sql(lock)
            publishing = pool.submit(publish_next, catalog, [REVENUE])
            done, _ = wait([publishing], timeout=0.5 if waits else 20)
            assert bool(done) is not waits
        publishing.result(20)
    engine.dispose()
