"""`dbt build` of the example: made once, then left alone until something changes."""

from __future__ import annotations

import json

from jaffle import Shop


def test_the_first_build_makes_everything(shop: Shop) -> None:
    done = shop.dbt("build")
    assert done.success, done.text
    assert done.results["orders"] == "CREATED 4 rows"
    assert done.results["raw_payments"] == "CREATED 5"
    assert set(done.statuses.values()) == {"success", "pass"}
    assert len(done.statuses) == 13
    assert ("jaffle.customers", "1 minute") in [(info.name, info.schedule) for info in shop.hr.status()]


def test_the_second_one_does_nothing(built: Shop) -> None:
    before, publications = built.history(), _publications(built)
    done = built.dbt("build")
    assert done.success, done.text
    models = {name: message for name, message in done.results.items() if done.statuses[name] == "success"}
    assert len(models) == 8
    assert {message.split()[0].rstrip(",") for message in models.values()} == {"UNCHANGED"}, models
    assert (built.history(), _publications(built)) == (before, publications)


def test_a_row_of_a_seed_arrives_by_a_differential_refresh(built: Shop) -> None:
    seed = built.folder / "seeds" / "raw_payments.csv"
    seed.write_text(seed.read_text() + "6,1,coupon,500\n", encoding="utf-8")
    done = built.dbt("build", "--select", "raw_payments+")
    assert done.success, done.text
    assert done.results["raw_payments"] == "OVERWRITTEN 6"
    assert done.results["stg_payments"] == "UNCHANGED"
    assert done.results["orders"] == "REFRESHED DIFFERENTIAL +1 -1"
    assert done.results["customers"] == "REFRESHED DIFFERENTIAL +1 -1"
    assert built.rows("SELECT CAST(amount AS STRING) FROM jaffle.orders WHERE order_id = 1") == [("15.00",)]


def test_a_row_of_a_source_arrives_by_a_differential_refresh(built: Shop, model: object) -> None:
    built.hr.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.crm")
    built.hr.spark.sql("CREATE OR REPLACE TABLE lake.crm.refunds USING iceberg AS SELECT 1L AS order_id, 3L AS amount")
    yml = built.folder / "models" / "sources.yml"
    yml.write_text("sources:\n  - name: crm\n    tables:\n      - name: refunds\n", encoding="utf-8")
    model("refunded", "select order_id, sum(amount) as amount from {{ source('crm', 'refunds') }} group by order_id")
    try:
        built.model("refunded", (built.folder / "models" / "refunded.sql").read_text().replace("select", _STREAM, 1))
        assert built.dbt("run", "--select", "refunded").results == {"refunded": "CREATED 1 rows"}
        built.hr.spark.sql("INSERT INTO lake.crm.refunds VALUES (1, 4), (2, 9)")
        assert built.dbt("run", "--select", "refunded").results == {"refunded": "REFRESHED DIFFERENTIAL +2 -1"}
        assert built.rows("SELECT * FROM jaffle.refunded") == [(1, 7), (2, 9)]
    finally:
        yml.unlink()


def test_documents_have_columns_and_types(built: Shop) -> None:
    assert built.dbt("docs", "generate").success
    catalog = json.loads((built.folder / "target" / "catalog.json").read_text())["nodes"]
    orders = catalog["model.jaffle_shop.orders"]
    assert orders["metadata"]["type"] == "stream_table"
    assert {name: column["type"] for name, column in orders["columns"].items()} == {
        "order_id": "bigint",
        "customer_id": "bigint",
        "order_date": "date",
        "status": "string",
        "amount": "decimal(22,2)",
    }
    assert catalog["model.jaffle_shop.stg_orders"]["metadata"]["type"] == "view"
    assert catalog["seed.jaffle_shop.raw_orders"]["metadata"]["type"] == "table"


def _publications(shop: Shop) -> list[object]:
    return [info.version for info in shop.hr.status()]


_STREAM = "{{ config(materialized='stream_table', refresh_mode='DIFFERENTIAL') }} select"
