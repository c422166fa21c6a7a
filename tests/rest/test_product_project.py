"""A whole project with Spark in a catalog server that is a product: refreshed, maintained, looked at by others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.nessie_server import Nessie
from kit.object_store import SECRET
from kit.sparks import SHORT_LIVED_OPTIONS
from pyiceberg.catalog import load_catalog

import headrace
from headrace.api.facade import Headrace
from headrace.config import FILE_NAME, load
from headrace.errors import HeadraceError
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode

TABLES = ("revenue", "rich")


def opened(nessie: Nessie, root: Path, more: str = "") -> Headrace:
    """Make a project there, with further settings."""
    options = "".join(f'"{name}" = "{value}"\n' for name, value in SHORT_LIVED_OPTIONS.items())
    (root / FILE_NAME).write_text(
        f'[headrace]\nwarehouse = "{nessie.warehouse}/{root.name}"\nspark_master = "local[2]"\n{more}[spark]\n{options}'
        f'{nessie.store.settings()}[lake]\ntype = "rest"\nuri = "{nessie.uri}"\n'
    )
    return headrace.open(load(root))


@pytest.fixture(scope="module")
def hr(nessie: Nessie, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headrace]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TEST_S3_SECRET", SECRET)
        with opened(nessie, tmp_path_factory.mktemp("project"), "format_version = 2\n") as made:
            made.spark.sql("CREATE NAMESPACE lake.market")
            made.spark.sql(
                "CREATE TABLE lake.market.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg"
            )
            made.spark.sql("INSERT INTO lake.market.orders VALUES (1, 'EU', 10), (2, 'US', 20)")
            made.sql(
                "CREATE STREAM TABLE market.revenue AS "
                "SELECT region, sum(amount) AS total FROM market.orders GROUP BY region"
            )
            made.sql(
                "CREATE STREAM TABLE market.rich REFRESH MODE DIFFERENTIAL AS "
                "SELECT region, total FROM market.revenue WHERE total > 15"
            )
            yield made


def read(nessie: Nessie, table: str) -> list[tuple[Any, ...]]:
    """Rows of a table as somebody reads it who knows the server only."""
    catalog = load_catalog("reader", type="rest", uri=nessie.uri, **nessie.storage)
    found = catalog.load_table(f"market.{table}").scan().to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def consistent(hr: Headrace, nessie: Nessie) -> None:
    """Every stream table holds what its query says, for Headrace and for readers of the server, undamaged."""
    for table in TABLES:
        assert hr.verify(f"market.{table}").ok
        assert read(nessie, table) == sorted(tuple(row) for row in hr.spark.table(f"lake.market.{table}").collect())
    assert all(row.damage is None and not row.behind for row in hr.status())


def test_tables_are_followed_by_their_change_logs(hr: Headrace, nessie: Nessie) -> None:
    """The server shows the newest snapshot of a table only, so that what it has of others is read whole."""
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (3, 'EU', 30)")
    done = {result.name: (result.mode, result.reason) for result in hr.refresh()}
    assert done == {
        "market.revenue": (Mode.FULL, FullReason.HISTORY_EXPIRED),
        "market.rich": (Mode.DIFFERENTIAL, None),
    }
    hr.spark.sql("DELETE FROM lake.market.orders WHERE id = 2")
    hr.refresh()
    assert [region for region, _ in read(nessie, "revenue")] == ["EU"]
    consistent(hr, nessie)


def test_files_that_the_server_keeps_are_left_alone(hr: Headrace, nessie: Nessie) -> None:
    hr.sql("CREATE STREAM TABLE market.gone AS SELECT id FROM market.orders")
    hr.sql("DROP STREAM TABLE market.gone")
    done = hr.maintain(older_than=dt.timedelta(0))
    assert {"expire", "remove_orphans", "remove_dropped"}.isdisjoint(result.action for result in done)
    skipped = {result.name: result.detail for result in done if result.action == "skipped"}
    assert "gc.enabled" in skipped["market.revenue"]
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (20, 'US', 50)")
    hr.refresh()
    consistent(hr, nessie)


def test_the_past_cannot_be_read(hr: Headrace, nessie: Nessie) -> None:
    before = hr.at()
    hr.spark.sql("INSERT INTO lake.market.orders VALUES (21, 'APAC', 50)")
    hr.refresh()
    with pytest.raises(HeadraceError) as caught:
        before.sql("SELECT * FROM market.revenue").collect()
    assert caught.value.code == "HISTORY_EXPIRED"
    assert len(hr.at().sql("SELECT * FROM market.revenue").collect()) == 3


def test_a_format_that_it_does_not_know_is_named(hr: Headrace, nessie: Nessie, tmp_path: Path) -> None:
    """Last: it takes the session over."""
    hr.close()
    with opened(nessie, tmp_path) as other:
        other.spark.sql("CREATE NAMESPACE lake.newer")
        other.spark.sql("CREATE TABLE lake.newer.orders (id BIGINT) USING iceberg")
        with pytest.raises(HeadraceError) as caught:
            other.sql("CREATE STREAM TABLE newer.copied AS SELECT id FROM newer.orders")
    assert caught.value.code == "LAKE_REFUSED"
    assert "format_version = 2" in str(caught.value.hint)
