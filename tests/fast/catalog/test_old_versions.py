import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from catalog_kit.clock import START, ManualClock
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, create, refresh, see

from headrace.catalog import Catalog
from headrace.catalog import schema as t
from headrace.catalog.state import history, old_history, old_versions
from headrace.errors import UserError


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(old_versions, "AT_ONCE", 2)
    for module in (old_versions, old_history, history):
        monkeypatch.setattr(module, "PAST", 3)
    return


def numbers(catalog: Catalog, *names) -> list[list[int]]:
    return [[v.version for v in catalog.versions(name)] for name in names]


def publications(catalog: Catalog) -> list[int]:
    return [p.id for p in catalog.publications()][::-1]


def at(seconds: int) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def seen(catalog: Catalog, clock: ManualClock, count: int, *sources) -> None:
    """Show a new version of each source every ten seconds."""
    for _ in range(count):
        for source in sources:
            see(catalog, source, int(clock.now().timestamp()))
        clock.advance(10)


def test_versions_superseded_before_a_time_go_but_for_the_newest(catalog: Catalog, clock: ManualClock) -> None:
    seen(catalog, clock, 10, ORDERS, ITEMS)
    assert catalog.forget_versions(at(10)) == 0  # superseded at that time, not before
    assert catalog.forget_versions(at(45), dry_run=True) == 8
    assert numbers(catalog, ORDERS, ITEMS) == [list(range(10))] * 2
    with catalog.reading() as reader:
        newest, then = reader.newest_versions(), reader.versions_as_of(at(45))
    assert catalog.forget_versions(at(45)) == 8
    assert numbers(catalog, ORDERS, ITEMS) == [list(range(4, 10))] * 2
    with catalog.reading() as reader:
        assert (reader.newest_versions(), reader.versions_as_of(at(45))) == (newest, then)
    assert catalog.forget_versions(at(10_000)) == 4
    assert numbers(catalog, ORDERS) == [[6, 7, 8, 9]]
    assert see(catalog, ORDERS, 77) == 10


def test_a_version_of_the_future_keeps_no_others(catalog: Catalog, clock: ManualClock) -> None:
    seen(catalog, clock, 2, ORDERS)
    clock.advance(1_000_000)
    see(catalog, ORDERS, 1)
    clock.advance(-1_000_000)
    seen(catalog, clock, 7, ORDERS)
    assert catalog.forget_versions(at(10_000)) == 6
    assert numbers(catalog, ORDERS) == [[6, 7, 8, 9]]


def test_what_a_frontier_or_a_gate_needs_stays(catalog: Catalog, iceberg, clock: ManualClock) -> None:
    create(catalog, REVENUE, ORDERS)
    create(catalog, TOP, ORDERS)
    seen(catalog, clock, 2, ORDERS)
    catalog.publish(refresh(catalog, iceberg, 1, TOP))
    seen(catalog, clock, 2, ORDERS)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    see(catalog, ITEMS)
    catalog.close_gates([ITEMS])
    seen(catalog, clock, 7, ORDERS, ITEMS)
    with catalog.reading() as reader:
        behind = reader.first_unreflected([ORDERS])
    assert catalog.forget_versions(at(10_000)) == 1
    assert numbers(catalog, ORDERS, ITEMS) == [list(range(1, 11)), list(range(8))]
    with catalog.reading() as reader:
        assert reader.first_unreflected([ORDERS]) == behind
    catalog.publish(refresh(catalog, iceberg, 2, TOP))
    catalog.open_gates([ITEMS])
    assert catalog.forget_versions(at(10_000)) == 2 + 4
    assert numbers(catalog, ORDERS, ITEMS) == [list(range(3, 11)), list(range(4, 8))]


def test_publications_go_with_what_they_made_and_the_past_stays_readable(
    catalog: Catalog, iceberg, clock: ManualClock
) -> None:
    create(catalog, REVENUE, ORDERS)
    for number in range(9):
        seen(catalog, clock, 1, ORDERS)
        catalog.publish(refresh(catalog, iceberg, number, REVENUE))
    made = publications(catalog)
    with catalog.reading() as reader:
        past, then = reader.past_frontiers(REVENUE), reader.versions_as_of(made[6])
    assert catalog.forget_versions(at(10_000)) > 0
    assert publications(catalog) == made  # the history still tells of them
    catalog.forget_history(at(10_000))
    catalog.forget_versions(at(10_000))
    assert publications(catalog) == made[5:]
    with catalog.reading() as reader:
        assert reader.past_frontiers(REVENUE) == past
        assert reader.versions_as_of(made[6]) == then
        with pytest.raises(UserError) as gone:
            reader.versions_as_of(made[2])
    assert gone.value.code == "PUBLICATION_NOT_FOUND"
    with catalog._database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(t.version)).scalar() == 8


def test_the_newest_publication_stays_though_nothing_refers_to_it(catalog: Catalog, iceberg, clock) -> None:
    create(catalog, REVENUE, ORDERS)
    seen(catalog, clock, 1, ORDERS)
    for number in range(4):
        clock.advance(10)
        moved = refresh(catalog, iceberg, number, REVENUE)
        catalog.publish(type(moved)(swaps=moved.swaps))
    made = publications(catalog)
    assert catalog.forget_versions(at(10_000)) == 0
    assert publications(catalog) == made[-1:]
    clock.advance(10)
    catalog.publish(refresh(catalog, iceberg, 9, REVENUE))
    assert publications(catalog) == [made[-1], made[-1] + 1]
