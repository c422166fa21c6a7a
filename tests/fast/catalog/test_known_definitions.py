"""Stream tables that are kept from one look to the next; `conftest` compares each answer with what would be read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import sqlalchemy as sa
from catalog_kit.clock import ManualClock
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, attempt, create, define, entry, refresh, see
from catalog_kit.statements import statements
from catalog_kit.stream_tables import drop_stream_table, replace_stream_table

from headrace.catalog import Catalog, Publication, RefreshMode, StreamTable
from headrace.catalog.definitions.known_definitions import KnownDefinitions
from headrace.errors import HeadraceError
from headrace.names import TableName


def detailed(sent: list[str]) -> int:
    """How many of them read the details of definitions; the judge's own are among them."""
    return sum("definition_json" in statement for statement in sent)


CHANGES: dict[str, Callable[[Catalog], object]] = {
    "created": lambda catalog: create(catalog, TOP, REVENUE),
    "replaced": lambda catalog: replace_stream_table(catalog, define(REVENUE, ITEMS)),
    "altered": lambda catalog: catalog.alter_stream_table(REVENUE, refresh_mode=RefreshMode.FULL),
    "stopped": lambda catalog: catalog.stop(REVENUE, "SOURCE_SCHEMA_CHANGED", "a column is gone"),
    "dropped": lambda catalog: drop_stream_table(catalog, REVENUE),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_by_whoever_has_looked_before(
    catalog: Catalog, url: str, clock: ManualClock, change: Callable[[Catalog], object]
) -> None:
    create(catalog, REVENUE, ORDERS)
    with Catalog.open(url, clock=clock) as other:
        before = other.stream_tables()
        assert before == catalog.stream_tables()
        change(catalog)
        after = other.stream_tables()
        assert after == catalog.stream_tables()
        assert after != before
        assert other.dependencies() == {t.name: t.sources for t in after}
        for name in (REVENUE, TOP):
            assert other.find_stream_table(name) == next((t for t in after if t.name == name), None)


def test_a_first_load_is_seen_and_later_refreshes_change_nothing(catalog: Catalog, iceberg: Iceberg) -> None:
    create(catalog, REVENUE, ORDERS)
    see(catalog)
    new = catalog.stream_tables()
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    loaded = catalog.stream_tables()
    assert [t.status for t in (*new, *loaded)] == ["NEW", "ACTIVE"]
    see(catalog, snapshot=2)
    catalog.publish(refresh(catalog, iceberg, 2, REVENUE))
    assert catalog.stream_tables() is loaded
    with statements(catalog) as sent, catalog.reading() as reader:
        assert reader.stream_tables() is loaded
        assert reader.stream_table(REVENUE) is loaded[0]
    judged = 2  # by the fixture
    assert detailed(sent) == judged


def test_of_many_only_what_has_changed_is_read_again(catalog: Catalog, url: str, clock: ManualClock) -> None:
    create(catalog, REVENUE, ORDERS)
    create(catalog, TOP, REVENUE)
    with Catalog.open(url, clock=clock) as other:
        before = other.stream_tables()
        catalog.alter_stream_table(TOP, refresh_mode=RefreshMode.FULL)
        with statements(other) as sent:
            after = other.stream_tables()
    assert [one is two for one, two in zip(before, after, strict=True)] == [True, False]
    read = [text.split("relation_id IN (")[1].count(",") + 1 for text in sent if "definition_json" in text]
    judged = 2  # of them all, by the fixture
    assert sorted(read) == [1, judged]


def test_several_threads_read_what_has_changed_once(catalog: Catalog, url: str, clock: ManualClock) -> None:
    create(catalog, REVENUE, ORDERS)
    with Catalog.open(url, clock=clock) as other:
        ready, begin = Barrier(4), KnownDefinitions.all

        def together(known: KnownDefinitions, connection: sa.Connection) -> tuple[StreamTable, ...]:
            ready.wait(30)
            return begin(known, connection)

        with statements(other) as sent, ThreadPoolExecutor(4) as threads, pytest.MonkeyPatch.context() as patched:
            patched.setattr(KnownDefinitions, "all", together)
            found = list(threads.map(lambda _: other.stream_tables(), range(4)))
    assert all(one is found[0] for one in found)
    judged = 4  # each answer by the fixture
    assert detailed(sent) == 1 + judged


def test_what_fails_changes_nothing(catalog: Catalog) -> None:
    create(catalog, REVENUE, ORDERS)
    kept = catalog.stream_tables()
    failed = attempt(lambda: create(catalog, REVENUE, ORDERS))
    assert isinstance(failed, HeadraceError)
    unknown = Publication(definitions=(define(TOP, REVENUE),), history=(entry(REVENUE),), leases=(), drops=(ITEMS,))
    assert isinstance(attempt(lambda: catalog.publish(unknown)), HeadraceError)
    assert catalog.stream_tables() is kept
    see(catalog)  # a transaction after one that failed, of the same connection
    assert catalog.stream_tables() is kept


def test_a_reader_keeps_to_its_state(catalog: Catalog, url: str, clock: ManualClock) -> None:
    create(catalog, REVENUE, ORDERS)
    with Catalog.open(url, clock=clock) as other, other.reading() as reader:
        before = reader.stream_tables()
        create(catalog, TOP, REVENUE)
        other_thread = catalog.stream_tables()
        assert reader.stream_tables() == before != other_thread


def test_a_catalog_that_lost_its_name_for_the_state_is_read_each_time(catalog: Catalog) -> None:
    create(catalog, REVENUE, ORDERS)
    with catalog._database.write() as connection:
        connection.execute(sa.text("DELETE FROM hr_definitions"))
    assert catalog.stream_tables() == catalog.stream_tables()
    create(catalog, TOP, REVENUE)
    assert [t.name for t in catalog.stream_tables()] == [REVENUE, TOP]
    names: list[TableName] = [t.name for t in map(catalog.stream_table, (REVENUE, TOP))]
    assert names == [REVENUE, TOP]
