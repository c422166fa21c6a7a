"""A promotion in a REST catalog: one table moves and another changes its name, or neither does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.rest_proxy import Request, RestProxy, rest_proxy
from kit.rest_server import RestServer
from kit.rest_shop import Shop, promotion
from kit.staged_tables import defined

from headrace.catalog import Publication, Rename
from headrace.errors import HeadraceError


@pytest.fixture
def proxy(server: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(server.uri) as running:
        yield running


@pytest.fixture
def shop(proxy: RestProxy, server: RestServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(proxy.uri, tmp_path, readers=server.uri)
    defined(made.catalog, made.name("a"), made.name("b"))
    made.publish(a=(1,), b=(2,))
    yield made
    made.close()


def shown(shop: Shop) -> list[list[int] | None]:
    return [shop.rows(table) for table in "abc"]


BEFORE: list[list[int] | None] = [[1], [2], None]
AFTER: list[list[int] | None] = [[2], None, [2]]


@pytest.mark.parametrize("step", ["/register", "/tables/a"])
def test_one_that_the_server_refuses_shows_nothing(shop: Shop, proxy: RestProxy, step: str) -> None:
    proxy.before = lambda request: 429 if request[1].endswith(step) else None
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(promotion(shop))
    assert caught.value.code == "LAKE_UNREACHABLE"
    proxy.before = lambda _: None
    assert shown(shop) == BEFORE
    shop.catalog.reset_staging()
    shop.agree()


@pytest.mark.parametrize("answer", [0, 503])
@pytest.mark.parametrize("happened", [False, True])
def test_one_whose_answer_is_lost_is_decided_by_the_tables(
    shop: Shop, proxy: RestProxy, happened: bool, answer: int
) -> None:
    """Proxies answer 503, too, where the server's connection ends after it has done what was asked."""

    def answered(request: Request) -> int | None:
        return answer if request[1].endswith("tables/a") else None

    if happened:
        proxy.after = answered
    else:
        proxy.before = answered
    made = promotion(shop)
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert caught.value.code == "PUBLISH_OUTCOME_UNKNOWN"
    assert shop.rows("c") == [2], "registered already"
    proxy.after = proxy.before = lambda _: None
    assert (shop.catalog.settle(made.uuid) is not None) is happened
    assert shown(shop) == (AFTER if happened else BEFORE)
    time.sleep(1.1)  # a table of our own is believed for a second
    shop.catalog.reset_staging()
    shop.agree()


@pytest.mark.parametrize("step", ["/register", "/tables/a"])
def test_one_whose_request_a_proxy_repeats_is_published(shop: Shop, proxy: RestProxy, step: str) -> None:
    """The server answers the second one that it has been done already: 409."""
    proxy.twice = lambda request: request[1].endswith(step)
    shop.catalog.publish(promotion(shop))
    assert shown(shop) == AFTER
    shop.agree()


def test_a_name_alone_that_was_registered_and_not_dropped_is_completed(shop: Shop, proxy: RestProxy) -> None:
    renames = (Rename(shop.name("b"), shop.name("c")),)
    made = Publication(renames=renames, relation_renames=renames)
    proxy.before = lambda request: 503 if request[0] == "DELETE" else None
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert caught.value.code == "PUBLISH_OUTCOME_UNKNOWN"
    proxy.before = lambda _: None
    assert shop.catalog.settle(made.uuid) is not None
    assert shown(shop) == [[1], None, [2]]
    shop.agree()
