"""A server that changes one table at a time: what is published one by one, what is refused, and what is said of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.rest_proxy import Request, RestProxy, rest_proxy
from kit.rest_server import RestServer
from kit.rest_shop import Shop
from kit.staged_tables import defined, publication

from headrace.config import default_settings
from headrace.errors import HeadraceError
from headrace.lakes.lake_settings import LakeSettings
from headrace.names import LAKE, SYSTEM_NAMESPACE, TableName
from headrace.observability.status import standings
from headrace.project.doctor import Outcome, check_lake

LOG = TableName(LAKE, (SYSTEM_NAMESPACE,), "shop_a_log")
COMPANION = TableName(LAKE, (SYSTEM_NAMESPACE,), "shop_a_companion")


@pytest.fixture
def proxy(server: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(server.uri, "transactions/commit") as running:
        yield running


@pytest.fixture
def shop(proxy: RestProxy, server: RestServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(proxy.uri, tmp_path, readers=server.uri)
    yield made
    made.close()
    for name in (LOG, COMPANION):
        if made.reader.table_exists((*name.namespace, name.table)):
            made.reader.drop_table((*name.namespace, name.table))


def stored(shop: Shop, *rows: int) -> dict[TableName, tuple[int, ...]]:
    """One stream table with its companion and its change log, the way a refresh writes them."""
    return {shop.name("a"): rows, COMPANION: rows, LOG: rows}


def publish(shop: Shop, *rows: int) -> str:
    made = publication(shop.catalog, shop.staged, stored(shop, *rows))
    shop.catalog.publish(made)
    return made.uuid


def rows(shop: Shop) -> list[list[int]]:
    names = [(*name.namespace, name.table) for name in stored(shop)]
    return [sorted(shop.reader.load_table(name).scan().to_arrow()["x"].to_pylist()) for name in names]


def test_a_stream_table_is_published_after_what_only_headrace_reads(shop: Shop, proxy: RestProxy) -> None:
    defined(shop.catalog, *stored(shop))
    publish(shop, 1)
    proxy.changes.clear()
    publish(shop, 1, 2)
    moved = [path.rsplit("/", 1)[-1] for method, path in proxy.changes if method == "POST"]
    assert sorted(moved[:2]) == ["shop_a_companion", "shop_a_log"]
    assert moved[2:] == ["a"]
    assert rows(shop) == [[1, 2]] * 3
    shop.agree()


def test_a_group_is_refused_and_nothing_is_shown(shop: Shop, proxy: RestProxy) -> None:
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,))
    shop.publish(b=(2,))
    proxy.changes.clear()
    with pytest.raises(HeadraceError) as caught:
        shop.publish(a=(3,), b=(4,))
    assert caught.value.code == "LAKE_UNSUPPORTED"
    assert "diamond_consistency" in str(caught.value.hint)
    assert (shop.rows("a"), shop.rows("b"), proxy.changes) == ([1], [2], [])
    shop.catalog.reset_staging()
    shop.agree()


@pytest.mark.parametrize("answer", [0, 503])
def test_a_publication_that_stops_half_way_is_completed(shop: Shop, proxy: RestProxy, answer: int) -> None:
    """What readers look at was not moved yet, and is by whoever comes next."""
    defined(shop.catalog, *stored(shop))
    publish(shop, 1)
    proxy.before = lambda request: answer if request[1].endswith("/tables/a") else None
    made = publication(shop.catalog, shop.staged, stored(shop, 1, 2))
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert (caught.value.code, caught.value.retryable) == ("PUBLISH_OUTCOME_UNKNOWN", True)
    assert shop.rows("a") == [1]
    proxy.before = lambda _: None
    assert shop.catalog.settle(made.uuid) is not None
    assert rows(shop) == [[1, 2]] * 3
    shop.agree()


def test_one_that_stops_before_the_first_table_has_not_happened(shop: Shop, proxy: RestProxy) -> None:
    defined(shop.catalog, *stored(shop))
    publish(shop, 1)

    def refuse(_: Request) -> int:
        return 429

    proxy.before = refuse
    with pytest.raises(HeadraceError) as caught:
        publish(shop, 1, 2)
    assert caught.value.code == "LAKE_UNREACHABLE"
    proxy.before = lambda _: None
    assert rows(shop) == [[1]] * 3
    shop.catalog.reset_staging()
    shop.agree()
    publish(shop, 1, 2, 3)
    assert rows(shop) == [[1, 2, 3]] * 3


def test_a_writer_who_comes_in_the_middle_is_found(shop: Shop, proxy: RestProxy) -> None:
    """Its companion and its log have moved, and then somebody else writes the table itself."""
    defined(shop.catalog, *stored(shop))
    publish(shop, 1)

    def write(request: Request) -> None:
        if request[1].endswith("/tables/a"):
            proxy.before = lambda _: None
            shop.reader.load_table(("shop", "a")).delete()

    proxy.before = write
    made = publication(shop.catalog, shop.staged, stored(shop, 1, 2))
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert caught.value.code == "PUBLISH_OUTCOME_UNKNOWN"
    assert shop.catalog.settle(made.uuid) is not None
    time.sleep(1.1)  # a table of our own is believed for a second
    (found,) = shop.catalog.foreign_writes()
    assert found.name == shop.name("a")
    assert rows(shop) == [[], [1, 2], [1, 2]]
    shop.catalog.restore_pointers([found], held=())
    assert rows(shop) == [[1, 2]] * 3
    shop.agree()


def test_deployments_are_refused(shop: Shop) -> None:
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.refuse_one_by_one()
    assert caught.value.code == "LAKE_UNSUPPORTED"


def test_the_doctor_says_so(shop: Shop, proxy: RestProxy, tmp_path: Path) -> None:
    check = check_lake(replace(default_settings(tmp_path), lake=LakeSettings(proxy.uri)))
    assert (check.outcome, "one table at a time" in check.finding) == (Outcome.WARN, True)
    assert "groups of stream tables are refused" in str(check.remedy)


def test_status_says_so(shop: Shop) -> None:
    defined(shop.catalog, shop.name("a"))
    shop.publish(a=(1,))
    with shop.catalog.reading() as reader:
        found = standings(reader, {}, None)
    assert [info.eventual for info in found.lines(eventual=not shop.catalog.moves_together())] == [True]
