"""A model that was changed: what `on_configuration_change`, `--full-refresh` and other materialisations make of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jaffle import Run, Shop

Write = Callable[[str, str], Path]


def text(query: str, **config: Any) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in {"materialized": "stream_table", **config}.items())
    return f"{{{{ config({given}) }}}}\n{query}\n"


def run(shop: Shop, *args: str) -> Run:
    return shop.dbt("run", "--select", "big", *args)


BIG = "select order_id, amount from {{ ref('orders') }} where amount > 10"
BIGGER = BIG.replace("10", "20")


@pytest.fixture
def big(built: Shop, model: Write) -> Shop:
    model("big", text(BIG, schedule="5 minutes", properties={"tier": "warm", "timeout": "10 minutes"}))
    assert run(built).success
    return built


def stored(shop: Shop) -> str:
    return shop.hr.show_create("jaffle.big")


def test_comments_and_white_space_are_no_change(big: Shop, model: Write) -> None:
    spaced = "-- what is big\n" + BIG.replace(" where", "\n\nwhere /* not small */")
    model("big", text(spaced, target_lag="5 minutes", properties={"timeout": "10 minutes", "tier": "warm"}))
    assert run(big).results == {"big": "UNCHANGED, up to date"}


def test_apply_alters_what_needs_no_recomputation(big: Shop, model: Write) -> None:
    version = big.hr.status(["jaffle.big"])[0].version
    model("big", text(BIG, refresh_mode="full", properties={"tier": "cold"}))
    assert run(big).results == {"big": "ALTERED (schedule, refresh_mode, tier, timeout), up to date"}
    (info,) = big.hr.status(["jaffle.big"])
    assert (info.schedule, info.refresh_mode.value, dict(info.properties)) == (None, "FULL", {"tier": "cold"})
    assert info.version == version
    assert run(big).results == {"big": "UNCHANGED, up to date"}


def test_apply_replaces_a_changed_query(big: Shop, model: Write) -> None:
    model("big", text(BIGGER, schedule="5 minutes"))
    done = run(big)
    assert done.results["big"].startswith("REPLACED (query, tier, timeout)")
    assert "WITH" not in stored(big)
    assert big.rows("SELECT order_id FROM jaffle.big") == big.rows(
        "SELECT order_id FROM jaffle.orders WHERE amount > 20"
    )


def test_continue_leaves_it_and_warns(big: Shop, model: Write) -> None:
    before = stored(big)
    model("big", text(BIGGER, schedule="5 minutes", on_configuration_change="continue"))
    done = run(big)
    assert done.success
    assert done.results == {"big": "LEFT AS IT IS, up to date"}
    assert "differs from the stream table (query, tier, timeout)" in done.text
    assert stored(big) == before


def test_fail_leaves_it_and_fails(big: Shop, model: Write) -> None:
    before = stored(big)
    model("big", text(BIG, schedule="1 hour", on_configuration_change="fail"))
    done = run(big)
    assert not done.success
    assert "(schedule, tier, timeout), and `on_configuration_change` is `fail`" in done.text
    assert stored(big) == before


def test_a_full_refresh_recomputes_and_applies(big: Shop, model: Write) -> None:
    assert run(big, "--full-refresh").results["big"].startswith("RECOMPUTED, REFRESHED FULL")
    model("big", text(BIGGER, on_configuration_change="fail"))
    assert run(big, "--full-refresh").results["big"].startswith("REPLACED (query, schedule")


def test_refreshing_can_be_left_to_the_scheduler(big: Shop, model: Write) -> None:
    config = {"schedule": "5 minutes", "properties": {"tier": "warm", "timeout": "10 minutes"}, "refresh": False}
    model("big", text(BIG, **config))
    big.hr.spark.sql("INSERT INTO lake.jaffle.raw_payments VALUES (7, 4, 'cash', 900)")
    try:
        assert run(big).results == {"big": "UNCHANGED, not refreshed"}
        assert big.dbt("run-operation", "headrace_refresh").success
        assert (4, 26) in big.rows("SELECT order_id, CAST(amount AS INT) FROM jaffle.big")
    finally:
        big.dbt("build", "--select", "raw_payments+")


def test_a_table_becomes_a_stream_table_and_back(built: Shop, model: Write) -> None:
    for kind, message in (
        ("table", "OK"),
        ("stream_table", "CREATED"),
        ("view", "OK"),
        ("stream_table", "CREATED"),
        ("table", "OK"),
    ):
        model("big", text(BIG, materialized=kind))
        done = run(built)
        assert done.results["big"].startswith(message), done.text
        assert ("jaffle.big" in [info.name for info in built.hr.status()]) is (kind == "stream_table")
    built.hr.spark.sql("DROP TABLE lake.jaffle.big")


def test_a_wrong_query_drops_nothing(built: Shop, model: Write) -> None:
    model("big", text(BIG, materialized="table"))
    assert run(built).success
    model("big", text("select nothing from {{ ref('orders') }}"))
    assert not run(built).success
    assert built.rows("SELECT order_id FROM jaffle.big")
    built.hr.spark.sql("DROP TABLE lake.jaffle.big")


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_load_that_fails_leaves_what_was_there(built: Shop, model: Write, kind: str) -> None:
    model("big", text(BIG, materialized=kind))
    assert run(built).success
    before = built.rows("SELECT order_id FROM jaffle.big")
    model("big", text(BIG.replace("amount from", "1 / (order_id - order_id) as share from")))
    done = run(built)
    assert not done.success
    assert "ARITHMETIC_ERROR" in done.text
    assert before
    assert built.rows("SELECT order_id FROM jaffle.big") == before
    assert not built.rows("SHOW TABLES IN lake.jaffle LIKE 'big__before*'")
    model("big", text(BIG))
    assert run(built).results["big"].startswith("CREATED")


def test_incremental_models_of_dbt_spark_run(built: Shop, model: Write) -> None:
    merged = {"materialized": "incremental", "file_format": "iceberg", "incremental_strategy": "merge"}
    model("big", text(BIG, unique_key="order_id", **merged))
    before = built.rows("SELECT order_id FROM jaffle.orders WHERE amount > 10")
    for _ in range(2):
        done = run(built)
        assert done.success, done.text
        assert built.rows("SELECT order_id FROM jaffle.big") == before
    built.hr.spark.sql("DROP TABLE lake.jaffle.big")


def test_operations(big: Shop) -> None:
    done = big.dbt("run-operation", "headrace_verify", "--args", "{tables: jaffle.big}")
    assert done.success, done.text
    assert not big.dbt("run-operation", "headrace_drop", "--args", "{table: jaffle.orders}").success
    assert big.dbt("run-operation", "headrace_drop", "--args", "{table: jaffle.big}").success
    assert "jaffle.big" not in [info.name for info in big.hr.status()]
