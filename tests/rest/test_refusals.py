"""A catalog server that refuses or has too much to do: Headrace and Spark say so in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kit.rest_proxy import Refusal, RestProxy, rest_proxy
from kit.rest_server import RestServer

import headrace
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.lakes.lake_settings import LakeSettings

REFUSALS = {
    (401, "NotAuthorizedException", "The access token expired"): ("LAKE_DENIED", False),
    (403, "ForbiddenException", "Principal reader is not authorised"): ("LAKE_DENIED", False),
    (419, "AuthenticationTimeoutException", "Credentials have timed out"): ("LAKE_DENIED", False),
    (429, "TooManyRequestsException", "Rate limit exceeded"): ("LAKE_UNREACHABLE", True),
    (500, "InternalServerError", "Internal server error"): ("LAKE_UNREACHABLE", True),
    (503, "ServiceUnavailableException", "Slow down"): ("LAKE_UNREACHABLE", True),
}
"""With the code and whether trying again helps, which callers are told."""


@pytest.fixture(scope="module")
def proxy(server: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(server.uri) as running:
        yield running


@pytest.fixture(scope="module")
def hr(server: RestServer, proxy: RestProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headrace]:
    settings = server.settings(tmp_path_factory.mktemp("project"))
    options = {**settings.spark_options, "spark.sql.catalog.lake.rest.client.max-retries": "1"}
    with headrace.open(replace(settings, spark_options=options, lake=LakeSettings(proxy.uri))) as opened:
        opened.spark.sql("CREATE NAMESPACE lake.denied")
        opened.spark.sql("CREATE TABLE lake.denied.orders (id BIGINT, amount BIGINT) USING iceberg")
        opened.sql("CREATE STREAM TABLE denied.revenue AS SELECT sum(amount) AS total FROM denied.orders")
        yield opened


@pytest.mark.parametrize(("refusal", "expected"), REFUSALS.items())
def test_nothing_is_published_and_the_next_refresh_makes_up_for_it(
    hr: Headrace, server: RestServer, proxy: RestProxy, refusal: Refusal, expected: tuple[str, bool]
) -> None:
    was = server.rows("denied.revenue")
    hr.spark.sql("INSERT INTO lake.denied.orders VALUES (1, 5)")
    proxy.refuses = refusal
    try:
        with pytest.raises(HeadraceError) as by_headrace:
            hr.refresh("denied.revenue")
        with pytest.raises(HeadraceError) as by_spark:
            hr.sql("CREATE TABLE lake.denied.more (id BIGINT) USING iceberg")
    finally:
        proxy.refuses = None
    for caught in (by_headrace.value, by_spark.value):
        assert (caught.code, caught.retryable) == expected, (caught, caught.detail)
        assert caught.hint
    assert server.rows("denied.revenue") == was
    hr.refresh("denied.revenue")
    assert server.rows("denied.revenue") != was
    assert hr.verify("denied.revenue").ok
