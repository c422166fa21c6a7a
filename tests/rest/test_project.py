"""A whole project whose lake is a REST catalog: refreshed, read by others, maintained, damaged and repaired."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.rest_server import RestServer
from pyiceberg.catalog import load_catalog

import headrace
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.results.refresh_results import Mode


@pytest.fixture(scope="module")
def hr(server: RestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headrace]:
    with headrace.open(server.settings(tmp_path_factory.mktemp("project"))) as opened:
        opened.spark.sql("CREATE NAMESPACE lake.market")
        opened.spark.sql(
            "CREATE TABLE lake.market.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg"
        )
        opened.spark.sql("INSERT INTO lake.market.orders VALUES (1, 'EU', 10), (2, 'US', 20)")
        opened.sql(
            "CREATE STREAM TABLE market.revenue AS "
            "SELECT region, sum(amount) AS total FROM market.orders GROUP BY region"
        )
        opened.sql("CREATE STREAM TABLE market.rich AS SELECT region, total FROM market.revenue WHERE total > 15")
        opened.sql("CREATE STREAM TABLE market.few AS SELECT region FROM market.revenue WHERE total < 1000")
        opened.sql(
            "CREATE STREAM TABLE market.both AS SELECT r.region, r.total FROM market.rich r JOIN market.few f "
            "ON r.region = f.region"
        )
        yield opened


def read(server: RestServer, table: str, namespace: str = "market") -> list[tuple[Any, ...]]:
    return server.rows(f"{namespace}.{table}")


def consistent(hr: Headrace, server: RestServer) -> None:
    """Every stream table holds what its query says, for Headrace and for readers of the REST catalog."""
    for table in ("revenue", "rich", "few", "both"):
        assert hr.verify(f"market.{table}").ok
        assert read(server, table) == sorted(tuple(row) for row in hr.spark.table(f"lake.market.{table}").collect())


def test_refreshes_in_both_modes_and_a_group_reach_readers_of_the_rest_catalog(
    hr: Headrace, server: RestServer
) -> None:
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (3, 'EU', 30)")
    done = {result.name: result for result in hr.refresh()}
    assert done["market.revenue"].mode is Mode.DIFFERENTIAL
    assert [(region, int(total)) for region, total in read(server, "revenue")] == [("EU", 40), ("US", 20)]
    consistent(hr, server)
    hr.spark.sql("DELETE FROM lake.market.orders WHERE id = 2")
    full = hr.refresh("market.revenue", full=True)
    assert full.mode is Mode.FULL
    hr.refresh()
    assert [region for region, _ in read(server, "both")] == ["EU"]
    consistent(hr, server)
    assert all(row.damage is None and not row.behind for row in hr.status())


def test_pinned_reads_see_one_published_state(hr: Headrace, server: RestServer) -> None:
    before = hr.at()
    at = dt.datetime.now(dt.UTC)
    was = read(server, "revenue")
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (4, 'APAC', 50)")
    hr.refresh()
    assert sorted(map(tuple, before.sql("SELECT * FROM market.revenue").collect())) == was
    assert sorted(map(tuple, hr.at(at).sql("SELECT * FROM market.revenue").collect())) == was
    assert len(read(server, "revenue")) == len(was) + 1


def test_a_foreign_writer_is_noticed_and_what_was_published_is_brought_back(hr: Headrace, server: RestServer) -> None:
    was = read(server, "revenue")
    hr.spark.sql("DELETE FROM lake.market.revenue WHERE region = 'EU'")
    time.sleep(1.1)  # a table of our own is believed for a second
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (5, 'EU', 1)")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh("market.revenue")
    assert caught.value.code == "FOREIGN_WRITER"
    assert [row.name for row in hr.status() if row.damage] == ["market.revenue"]
    hr.repair("market.revenue")
    assert read(server, "revenue") == was
    hr.refresh()
    consistent(hr, server)


def test_a_dropped_table_is_brought_back(hr: Headrace, server: RestServer) -> None:
    was = read(server, "few")
    load_catalog("other", type="rest", uri=server.uri).drop_table("market.few")
    time.sleep(1.1)
    assert [row.name for row in hr.status() if row.damage] == ["market.few"]
    hr.repair("market.few")
    assert read(server, "few") == was
    hr.refresh()
    consistent(hr, server)


def test_a_new_definition_and_a_dropped_table_reach_readers(hr: Headrace, server: RestServer) -> None:
    hr.sql("CREATE STREAM TABLE market.last AS SELECT id FROM market.orders")
    hr.sql("CREATE OR REPLACE STREAM TABLE market.last AS SELECT id, amount * 2 AS twice FROM market.orders")
    assert len(read(server, "last")[0]) == 2
    hr.sql("ALTER STREAM TABLE market.last SET QUERY AS SELECT id, region FROM market.orders WHERE id < 3")
    assert read(server, "last") == [(1, "EU")]
    hr.sql("DROP STREAM TABLE market.last")
    assert not load_catalog("reader", type="rest", uri=server.uri).table_exists("market.last")


def test_maintenance_expires_snapshots_and_readers_go_on(hr: Headrace, server: RestServer) -> None:
    hr.maintain(older_than=dt.timedelta(0))
    consistent(hr, server)
    kept = load_catalog("reader", type="rest", uri=server.uri).load_table("market.revenue").metadata.snapshots
    assert len(kept) < 6
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (6, 'EU', 2)")
    assert {result.mode for result in hr.refresh() if result.name == "market.revenue"} == {Mode.DIFFERENTIAL}
    consistent(hr, server)


def test_a_deployment_is_promoted_and_taken_back(hr: Headrace, server: RestServer) -> None:
    was = read(server, "revenue")
    doubled = "SELECT region, CAST(sum(amount) * 2 AS DECIMAL(22,2)) AS total FROM market.orders GROUP BY region"
    hr.create_green("market.revenue", doubled)
    hr.create_green("market.rich")
    green = read(server, "revenue", "market__green")
    assert [total for _, total in green] == [2 * total for _, total in was]
    assert read(server, "revenue") == was
    hr.promote_all_green()
    assert read(server, "revenue") == green
    assert read(server, "revenue", "market__green_previous") == was
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (20, 'EU', 7)")
    hr.refresh()
    consistent(hr, server)
    hr.rollback_green(deployment="green")
    assert {region: total for region, total in read(server, "revenue")}["EU"] == dict(was)["EU"] + 7
    hr.refresh()
    consistent(hr, server)
    hr.cancel_green(deployment="green")
    assert not load_catalog("reader", type="rest", uri=server.uri).table_exists("market__green.revenue")
    hr.refresh()
    consistent(hr, server)
    assert all(row.damage is None for row in hr.status())


def test_a_server_that_is_away_stops_a_refresh_and_changes_nothing(hr: Headrace, server: RestServer) -> None:
    was = read(server, "revenue")
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (7, 'EU', 3)")
    server.kill()
    with pytest.raises(HeadraceError) as caught:
        hr.refresh("market.revenue")
    assert (caught.value.code, caught.value.retryable) == ("LAKE_UNREACHABLE", True)
    server.start()
    assert read(server, "revenue") == was
    hr.refresh()
    consistent(hr, server)


def test_only_the_project_of_a_lake_opens_it(hr: Headrace, tmp_path: Path) -> None:
    with pytest.raises(HeadraceError) as caught:
        headrace.open(replace(hr.settings, lake=None))
    assert caught.value.code == "LAKE_CHANGED"
