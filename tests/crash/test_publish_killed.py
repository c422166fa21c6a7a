"""SIGKILL at every point of the publish transaction, in a real process: all of it happened, or nothing."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit import killed, older
from catalog_kit.clock import START
from catalog_kit.databases import BACKENDS
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ORDERS, REVENUE, TOP, TTL, create, define, entry, lake, refresh, see
from kit.long_tests import LONG

from headrace.catalog import (
    Catalog,
    FrontierMove,
    Green,
    LogChange,
    NewVersion,
    Publication,
    Rename,
    Stop,
    Swap,
    resource_of,
)
from headrace.catalog.schema import REVISIONS
from headrace.frontier import Frontier
from headrace.names import STAGING

LOG, OLD, THIRD, NEW = lake("_headrace.revenue_log"), lake("shop.old"), lake("shop.third"), lake("shop.new")
RENAMED = lake("shop.renamed")

STRIDE = 1 if LONG else 6
"""So far lies one point from the next; the databases begin at different ones. What is committed early is there after a
kill at any later point, so that a few near the end find it as all do."""


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").fresh()
    return f"sqlite:///{tmp_path / 'headrace.db'}"


@pytest.fixture
def first(url: str) -> int:
    """The first point that is played."""
    return 1 if url.startswith("sqlite") else 1 + STRIDE // 2


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened


@pytest.fixture
def iceberg(url: str) -> Iceberg:
    return Iceberg(url)


def everything(catalog: Catalog) -> tuple[object, ...]:
    with catalog.reading() as reader:
        return (
            [(s.name, s.query, s.generation, s.status, s.log) for s in reader.stream_tables()],
            reader.frontiers(),
            [(v.relation, v.version, v.snapshot_id, v.publication_id) for v in reader.newest_versions().values()],
            [p.uuid for p in reader.publications()],
            [(e.id, e.stream, e.publication_id) for e in reader.history()],
            reader.pointers(),
            reader.pointers(STAGING),
            reader.foreign_writes(),
            reader.greens(),
        )


def rich_publication(catalog: Catalog, iceberg: Iceberg) -> Publication:
    """One that does everything a publication can do."""
    for name in (REVENUE, TOP, OLD, THIRD):
        create(catalog, name, ORDERS)
    see(catalog)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE, TOP, OLD, THIRD))
    see(catalog, ORDERS, 2)
    leases = catalog.acquire([resource_of(REVENUE), resource_of(TOP)], "doomed", TTL)
    iceberg.commit(LOG, "log-2")
    publication = refresh(catalog, iceberg, 2, REVENUE, TOP, leases=leases)
    return dataclasses.replace(
        publication,
        swaps=(*publication.swaps, Swap(LOG, None)),
        definitions=(define(NEW, REVENUE), define(RENAMED, ORDERS)),
        drops=(OLD,),
        deletes=(OLD,),
        renames=(Rename(THIRD, RENAMED),),
        relation_renames=(Rename(THIRD, RENAMED),),
        greens=(Green(RENAMED, "green", REVENUE, {}, START),),
        stops=(Stop(TOP, "SOURCE_SCHEMA_CHANGED", "a column is gone"),),
        logs=(LogChange(REVENUE, LOG),),
    )


def test_everything_that_is_published_is_committed_at_once(url: str, catalog: Catalog, iceberg: Iceberg) -> None:
    publication = rich_publication(catalog, iceberg)
    commits, statements = killed.counted(catalog, lambda: catalog.publish(publication))
    assert statements > 15
    assert commits == [statements], "something is committed before the rest"


def test_killed_at_every_point_of_publishing(url: str, first: int, catalog: Catalog, iceberg: Iceberg) -> None:
    publication = rich_publication(catalog, iceberg)
    before = everything(catalog)
    for point in itertools.count(first, STRIDE):
        code = killed.die_at(point, killed.publish, url, publication)
        if catalog.publication(publication.uuid) is not None:
            break
        assert code == killed.KILLED
        assert everything(catalog) == before, f"half visible after point {point}"
    assert point > 15, "the children died before they published anything worth the name"
    assert code == killed.KILLED, "the last point is after the commit"
    after = everything(catalog)
    assert after != before
    assert catalog.publish(publication) == catalog.settle(publication.uuid)
    assert everything(catalog) == after
    assert iceberg.pointer(REVENUE) == "revenue-2"
    assert catalog.dirty_staging() == ()


def test_a_successor_takes_over_from_the_dead(url: str, catalog: Catalog, iceberg: Iceberg) -> None:
    publication = rich_publication(catalog, iceberg)
    assert killed.die_at(8, killed.publish, url, publication) == killed.KILLED
    taken = catalog.acquire([resource_of(REVENUE)], "heir", TTL, is_dead=lambda owner: owner == "doomed")
    assert [x.token for x in taken] == [2]
    assert catalog.reset_staging([REVENUE], held=taken) == (REVENUE,)
    catalog.publish(refresh(catalog, iceberg, 3, REVENUE, leases=taken))
    assert (iceberg.pointer(REVENUE), iceberg.pointer(TOP)) == ("revenue-3", "top-1")
    assert [v.version for v in catalog.versions(REVENUE)] == [0, 1]


def test_killed_at_any_time(url: str, catalog: Catalog, iceberg: Iceberg) -> None:
    """A stream of publications, killed from outside without regard to where it is, even inside the commit."""
    create(catalog)
    create(catalog, TOP)
    see(catalog)
    chance, done = random.Random(7), 0
    for _ in range(8):
        child = killed.start(killed.publish_for_ever, url, chain(iceberg, done))
        target = done + chance.randint(1, 6)
        while done < target and child.is_alive():
            done = len(catalog.publications())
        child.join(chance.random() * 0.01)
        child.kill()
        child.join()
        done = whole(catalog, iceberg)
    assert done > 8


STREAMS = (REVENUE, TOP)


def chain(iceberg: Iceberg, start: int) -> list[Publication]:
    """Publications that follow each other; all is staged already, so that the child does nothing but publish."""
    for stream in STREAMS:
        iceberg.commit(stream, "staged-for-all")
    return [_link(number) for number in range(start, start + 300)]


def _link(number: int) -> Publication:
    swaps = tuple(Swap(s, "staged-for-all" if number else None) for s in STREAMS)
    return Publication(
        swaps=swaps,
        versions=tuple(NewVersion(s, number, number) for s in STREAMS),
        frontiers=tuple(FrontierMove(s, Frontier({ORDERS: 0})) for s in STREAMS),
        history=tuple(entry(s, rows_inserted=number) for s in STREAMS),
    )


def whole(catalog: Catalog, iceberg: Iceberg) -> int:
    """Check that every publication is there whole; returns how many there are."""
    with catalog.reading() as reader:
        count = len(reader.publications())
        for stream in STREAMS:
            assert [v.version for v in reader.versions(stream)] == list(range(count))
            assert [e.rows_inserted for e in reader.history(stream)] == list(range(count))[::-1]
    assert {iceberg.pointer(s) for s in STREAMS} == ({"staged-for-all"} if count else {None})
    return count


def test_killed_at_every_point_of_a_migration(url: str, first: int) -> None:
    older.make(url, REVISIONS[0])
    finish(url, "hr_published", first, STRIDE)


def test_killed_at_every_point_of_making_a_catalog(url: str) -> None:
    finish(url, "hr_relation", 1, 1 if LONG else 6)


def finish(url: str, table: str, first: int, stride: int) -> None:
    """Kill children at one point after the other until one gets through."""
    for point in itertools.count(first, stride):
        code = killed.die_at(point, killed.migrate, url)
        if code == killed.SURVIVED:
            break
        assert code == killed.KILLED
    assert table in older.tables(url)
    assert point > 5
    with Catalog.open(url, create=False) as catalog:
        create(catalog)
