"""Gates and watermarks in the catalog, on both databases."""

import datetime as dt
import threading

import pytest
from catalog_kit.clock import START
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, create, lake, refresh, see

from headrace.catalog import Catalog, Mirror
from headrace.catalog.safeguards import gates
from headrace.errors import UserError


def test_a_gate_closes_at_the_newest_version_and_stays_there(catalog: Catalog) -> None:
    create(catalog)
    see(catalog, snapshot=1)
    see(catalog, snapshot=2)
    before = catalog.pulse()
    closed = catalog.close_gates([ORDERS])[ORDERS]
    assert (closed.version, closed.closed_at) == (1, START)
    assert catalog.pulse() != before
    see(catalog, snapshot=3)
    assert catalog.close_gates([ORDERS]) == {ORDERS: closed}
    catalog.open_gates([ORDERS])
    assert catalog.gates() == {}


def test_nobody_numbers_a_version_while_a_gate_closes(catalog: Catalog) -> None:
    see(catalog, snapshot=1)
    other = threading.Thread(target=see, args=(catalog, ORDERS, 2), daemon=True)
    with catalog._database.write() as connection:
        gates.close(connection, [ORDERS], START)
        other.start()
        other.join(0.3)
        assert other.is_alive()
    other.join(180)
    assert catalog.gates()[ORDERS].version == 0
    assert catalog.newest_versions()[ORDERS].version == 1


def test_nobody_publishes_while_a_gate_closes(catalog: Catalog, iceberg: Iceberg) -> None:
    see(catalog)
    create(catalog)
    publication = refresh(catalog, iceberg, 1, REVENUE)
    other = threading.Thread(target=catalog.publish, args=(publication,), daemon=True)
    with catalog._database.write() as connection:
        gates.close(connection, [ORDERS], START)
        other.start()
        other.join(0.3)
        assert other.is_alive()
    other.join(180)
    assert catalog.newest_versions()[REVENUE].version == 0


def test_a_gate_of_a_former_table_does_not_hold_a_mirror_back(catalog: Catalog) -> None:
    see(catalog)
    catalog.close_gates([ORDERS])
    catalog.create_source("shop", "postgres", {}, [Mirror(ORDERS, lake("_headrace.shop_orders_log"))])
    assert catalog.gates() == {}


def test_gates_open_all_or_none(catalog: Catalog) -> None:
    see(catalog)
    catalog.close_gates([ORDERS, ITEMS])  # of the second nothing is known
    with pytest.raises(UserError, match="GATE_NOT_CLOSED"):
        catalog.open_gates([ORDERS, ITEMS])
    assert set(catalog.gates()) == {ORDERS}


def test_a_source_that_becomes_a_stream_table_is_held_back_no_longer(catalog: Catalog) -> None:
    see(catalog, REVENUE)
    catalog.close_gates([REVENUE])
    create(catalog)
    assert catalog.gates() == {}


def test_watermarks_advance(catalog: Catalog) -> None:
    see(catalog)
    see(catalog, ITEMS)
    catalog.create_watermark_group("loads", [ORDERS, ITEMS], dt.timedelta(seconds=1.5))
    before = catalog.pulse()
    catalog.advance_watermark(ORDERS, START)
    assert catalog.pulse() != before
    (group,) = catalog.watermark_groups()
    assert (group.tolerance, group.marks) == (dt.timedelta(seconds=1.5), {ORDERS: START, ITEMS: None})
    catalog.advance_watermark(ORDERS, START)
    with pytest.raises(UserError, match="WATERMARK_BACKWARDS"):
        catalog.advance_watermark(ORDERS, START - dt.timedelta(seconds=1))
    with pytest.raises(UserError, match="WATERMARK_TAKEN"):
        catalog.create_watermark_group("more", [REVENUE, ITEMS], dt.timedelta(0))
    assert catalog.drop_watermark_group("loads")
    assert not catalog.drop_watermark_group("loads")
    assert catalog.watermark_groups() == ()
