"""An exchange of two generations as one publication: names, identities, and what refuses it."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from catalog_kit.clock import START
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ORDERS, REVENUE, TOP, create, define, entry, lake, refresh, see
from catalog_kit.stream_tables import drop_stream_table

from headrace.catalog import Catalog, FrontierMove, Green, NewVersion, Publication, Rename, Role, Status, Stop, Swap
from headrace.errors import HeadraceError
from headrace.frontier import Frontier

GREEN, PREVIOUS = lake("shop__green.revenue"), lake("shop__green_previous.revenue")
THIRD = lake("shop.third")
BESIDE = Green(GREEN, "green", REVENUE, {"generation": 1}, START)


@pytest.fixture
def deployed(catalog: Catalog, iceberg: Iceberg) -> Catalog:
    """A stream table, its reader, and its green, all loaded."""
    create(catalog, REVENUE, ORDERS)
    create(catalog, TOP, REVENUE)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    catalog.publish(refresh(catalog, iceberg, 1, TOP, sources=(REVENUE,)))
    catalog.publish(Publication(definitions=(define(GREEN, ORDERS),), greens=(BESIDE,)))
    catalog.publish(refresh(catalog, iceberg, 2, GREEN))
    return catalog


def exchange(iceberg: Iceberg) -> Publication:
    """Give the public table a new state, and the other generation a new name."""
    expected, other = iceberg.pointer(REVENUE), iceberg.pointer(GREEN)
    iceberg.commit(REVENUE, "revenue-9")
    renames = (Rename(GREEN, PREVIOUS),)
    return Publication(
        swaps=(Swap(REVENUE, expected, "revenue-9"), Swap(PREVIOUS, other)),
        versions=(NewVersion(REVENUE, 1, 1009, 9),),
        frontiers=(FrontierMove(REVENUE, Frontier({ORDERS: 0})), FrontierMove(PREVIOUS, Frontier({ORDERS: 0}))),
        history=(entry(REVENUE), entry(PREVIOUS)),
        definitions=(define(REVENUE, ORDERS), define(PREVIOUS, ORDERS)),
        renames=renames,
        relation_renames=renames,
        greens=(
            dataclasses.replace(BESIDE, name=PREVIOUS, promoted_at=START, keep_until=START + dt.timedelta(days=1)),
        ),
        stops=(Stop(TOP, "SOURCE_SCHEMA_CHANGED", "gone"), Stop(THIRD, "SOURCE_SCHEMA_CHANGED", "dropped by now")),
    )


def test_the_public_table_keeps_its_identity(deployed: Catalog, iceberg: Iceberg) -> None:
    before, other = deployed.stream_table(REVENUE), deployed.stream_table(GREEN)
    deployed.publish(exchange(iceberg))
    after = deployed.stream_table(REVENUE)
    assert (after.id, after.created_at, after.generation) == (before.id, before.created_at, before.generation + 1)
    assert deployed.stream_table(PREVIOUS).id == other.id
    assert deployed.find_stream_table(GREEN) is None
    assert [v.version for v in deployed.versions(REVENUE)] == [0, 1]
    assert deployed.frontier(TOP) == Frontier({REVENUE: 0})
    assert (iceberg.pointer(GREEN), iceberg.pointer(PREVIOUS)) == (None, "revenue-2")
    assert [(g.name, g.original) for g in deployed.greens()] == [(PREVIOUS, REVENUE)]
    assert deployed.stream_table(TOP).status is Status.STOPPED
    assert deployed.foreign_writes() == ()


def test_what_is_renamed_keeps_its_history_and_takes_a_name_that_nothing_reads_any_more(
    deployed: Catalog, iceberg: Iceberg
) -> None:
    create(deployed, THIRD, PREVIOUS)  # a source of that name was read once
    see(deployed, PREVIOUS)
    with deployed.reading() as reader:
        assert reader.unused([PREVIOUS, ORDERS, REVENUE]) == set()
    drop_stream_table(deployed, THIRD)
    with deployed.reading() as reader:
        assert reader.unused([PREVIOUS, ORDERS, REVENUE]) == {PREVIOUS}
    deployed.publish(exchange(iceberg))
    assert [e.stream for e in deployed.history(PREVIOUS)] == [PREVIOUS, GREEN]
    assert [e.stream for e in deployed.history(PREVIOUS, 1)] == [PREVIOUS]
    assert [e.stream for e in deployed.history(GREEN)] == [GREEN]
    back = (Rename(PREVIOUS, GREEN),)
    deployed.publish(Publication(renames=back, relation_renames=back, history=(entry(GREEN),)))
    assert [e.stream for e in deployed.history(GREEN)] == [GREEN, PREVIOUS, GREEN]
    assert [v.version for v in deployed.versions(GREEN)] == [0]


def test_an_exchange_happens_once(deployed: Catalog, iceberg: Iceberg) -> None:
    publication = exchange(iceberg)
    deployed.publish(publication)
    deployed.publish(publication)  # whose outcome was not known
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(dataclasses.replace(publication, uuid="another"))
    assert refused.value.code == "DEPLOYMENT_CHANGED"
    assert [v.version for v in deployed.versions(REVENUE)] == [0, 1]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)  # which can be told how much room there is
def test_a_full_disk_in_an_exchange_changes_nothing(deployed: Catalog, iceberg: Iceberg) -> None:
    publication = exchange(iceberg)
    long = dataclasses.replace(publication.history[0], reason_detail="x" * 100_000)
    before = deployed.stream_tables(), deployed.greens(), deployed.newest_versions(), deployed.history()
    with deployed._database.read() as connection:  # the pool's one connection keeps the limit
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(dataclasses.replace(publication, history=(*publication.history, long)))
    assert refused.value.code == "DISK_FULL"
    assert (deployed.stream_tables(), deployed.greens(), deployed.newest_versions(), deployed.history()) == before
    deployed.publish(publication)
    assert [g.name for g in deployed.greens()] == [PREVIOUS]


def test_a_table_has_one_green(deployed: Catalog) -> None:
    name = lake("shop__blue.revenue")
    second = Green(name, "blue", REVENUE, {}, START)
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(Publication(definitions=(define(name, ORDERS),), greens=(second,)))
    assert refused.value.code == "DEPLOYMENT_CHANGED"
    assert deployed.find_stream_table(name) is None
    deployed.publish(Publication(drops=(GREEN,), deletes=(GREEN,)))
    assert deployed.greens() == ()
    assert lake("shop__green.revenue") not in {r.name for r in deployed.relations()}


def test_new_tables_and_dropped_ones_are_known_by_their_public_names(deployed: Catalog) -> None:
    new, public = lake("shop__v2.new"), lake("shop.new")
    one = Green(new, "v2", public, {}, START, role=Role.NEW)
    gone = Green(TOP, "v2", TOP, {"generation": 1}, START, role=Role.DROP)
    deployed.publish(Publication(definitions=(define(new, ORDERS),), greens=(one, gone)))
    assert deployed.greens() == (BESIDE, gone, one)
    assert public not in {r.name for r in deployed.relations()}

    was, former = deployed.stream_table(TOP), lake("shop__v2_previous.top")
    after = (
        dataclasses.replace(one, name=public, promoted_at=START),
        dataclasses.replace(gone, name=former, promoted_at=START),
    )
    promotion = Publication(
        definitions=(define(public, ORDERS), define(former, REVENUE)),
        relation_renames=(Rename(new, public), Rename(TOP, former)),
        greens=after,
    )
    create(deployed, THIRD, TOP)  # while the promotion was prepared
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(promotion)
    assert refused.value.code == "DEPLOYMENT_CHANGED"
    assert deployed.greens() == (BESIDE, gone, one)
    drop_stream_table(deployed, THIRD)
    deployed.publish(promotion)
    assert deployed.greens() == (BESIDE, *after)
    assert deployed.stream_table(former).id == was.id
    deployed.publish(Publication(drops=(former,), greens_ended=(public,)))
    assert deployed.greens() == (BESIDE,)
    assert deployed.stream_table(public).name == public


def test_a_table_with_a_green_is_not_dropped_under_it(deployed: Catalog) -> None:
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(Publication(drops=(REVENUE,), deletes=(REVENUE,)))
    assert refused.value.code == "DEPLOYMENT_CHANGED"
    assert deployed.find_stream_table(REVENUE) is not None
    deployed.publish(Publication(drops=(REVENUE, GREEN), deletes=(REVENUE, GREEN)))


def test_no_green_of_what_was_dropped_meanwhile(catalog: Catalog) -> None:
    """TOP reads what was a stream table; its relation stays."""
    create(catalog, REVENUE, ORDERS)
    create(catalog, TOP, REVENUE)
    drop_stream_table(catalog, REVENUE)
    for original in (REVENUE, lake("shop.never")):
        beside = dataclasses.replace(BESIDE, original=original)
        with pytest.raises(HeadraceError) as refused:
            catalog.publish(Publication(definitions=(define(GREEN, ORDERS),), greens=(beside,)))
        assert refused.value.code == "DEPLOYMENT_CHANGED"


def test_two_generations_that_close_a_cycle_together(deployed: Catalog, iceberg: Iceberg) -> None:
    """Each was fine when it was looked at: the second one is refused, as a whole."""
    publication = exchange(iceberg)
    definitions = (define(REVENUE, TOP), define(PREVIOUS, ORDERS))
    frontiers = (FrontierMove(PREVIOUS, Frontier({ORDERS: 0})),)
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(dataclasses.replace(publication, definitions=definitions, frontiers=frontiers))
    assert refused.value.code == "CYCLE"
    assert "shop.revenue reads shop.top reads shop.revenue" in refused.value.message
    assert [g.name for g in deployed.greens()] == [GREEN]


def test_two_greens_that_are_going_to_read_each_other(deployed: Catalog) -> None:
    """The green of one reads the other's original, as it was made first."""
    deployed.publish(Publication(drops=(GREEN,), deletes=(GREEN,)))
    deployed.publish(Publication(definitions=(define(GREEN, THIRD),), greens=(BESIDE,)))
    create(deployed, THIRD, ORDERS)
    other = lake("shop__green.third")
    beside = dataclasses.replace(BESIDE, name=other, original=THIRD)
    with pytest.raises(HeadraceError) as refused:
        deployed.publish(Publication(definitions=(define(other, GREEN),), greens=(beside,)))
    assert refused.value.code == "CYCLE"


def test_conditions_and_watches_are_kept_until_they_end(deployed: Catalog) -> None:
    assert not deployed.has_unattended()
    deployed.set_auto_promote("green", {"with": {"window": "02:00-04:00"}})
    assert deployed.has_unattended()
    deployed.note_refusal("green", "CHECK_FAILED", "No.")
    (armed,) = deployed.auto_deployments()
    assert (armed.conditions, armed.refused_code) == ({"with": {"window": "02:00-04:00"}}, "CHECK_FAILED")
    deployed.set_auto_promote("green", {"with": {}})
    assert deployed.auto_deployments()[0].tried_at is None
    promoted = dataclasses.replace(BESIDE, promoted_at=START, watch={"until": "then"})
    deployed.publish(Publication(greens=(promoted,)))
    assert deployed.auto_deployments() == ()
    assert deployed.greens() == (promoted,)
    assert deployed.has_unattended()
    deployed.end_watch("green", START + dt.timedelta(seconds=1))  # of another promotion
    assert deployed.has_unattended()
    deployed.end_watch("green", START)
    assert not deployed.has_unattended()
    deployed.note_load(GREEN, {"begun": "now"})
    deployed.note_load(REVENUE, {"begun": "now"})  # which is no second generation
    assert deployed.green_loads() == {GREEN: {"begun": "now"}}
