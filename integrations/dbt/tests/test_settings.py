"""What changes results is the project's, not dbt's: dbt-spark turns ANSI mode off, which would redefine tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jaffle import Shop

Write = Callable[[str, str], Path]

DEPENDS = "select order_id, size(cast(null as array<int>)) as n from {{ ref('stg_orders') }}"
"""NULL in ANSI mode, -1 without it."""

HEAD = "{{ config(materialized='stream_table') }} "


def test_a_result_that_depends_on_ansi_mode_is_that_of_the_project(built: Shop, model: Write) -> None:
    spark = built.hr.spark
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    query = "SELECT DISTINCT size(cast(null as array<int>)) AS n FROM jaffle.stg_orders"
    spark.conf.set("spark.sql.ansi.enabled", "false")
    assert built.rows(query) == [(-1,)], "the query does depend on it"
    spark.conf.set("spark.sql.ansi.enabled", "true")
    model("depends", HEAD + DEPENDS)
    assert built.dbt("run", "--select", "depends").success
    assert built.rows("SELECT DISTINCT n FROM jaffle.depends") == [(None,)]
    assert "SET " not in built.hr.show_create("jaffle.depends"), "defined with the project's settings"
    assert built.hr.verify("jaffle.depends").ok
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_a_table_of_another_setting_is_defined_again(built: Shop, model: Write) -> None:
    model("depends", HEAD + DEPENDS)
    spark = built.hr.spark
    spark.conf.set("spark.sql.ansi.enabled", "false")
    built.hr.create_stream_table("jaffle.depends", DEPENDS.replace("{{ ref('stg_orders') }}", "jaffle.stg_orders"))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    assert built.rows("SELECT DISTINCT n FROM jaffle.depends") == [(-1,)]
    done = built.dbt("run", "--select", "depends")
    assert done.results["depends"].startswith("REPLACED (settings)")
    assert built.rows("SELECT DISTINCT n FROM jaffle.depends") == [(None,)]


@pytest.mark.parametrize(
    "setting",
    [
        "set spark.sql.ansi.enabled = false",
        "/* for old times' sake */ SET\n `spark.sql.ansi.enabled` = false",
        "set time zone 'Europe/Vienna'",
        "set spark.sql.session.timezone = UTC",
        "set spark.sql.caseSensitive=true",
    ],
)
def test_hooks_cannot_change_them(built: Shop, model: Write, setting: str) -> None:
    model("hooked", f'{{{{ config(materialized="table", pre_hook="{setting}") }}}} select 1 as x'.replace("\n", " "))
    done = built.dbt("run", "--select", "hooked")
    assert not done.success
    assert "[INVALID_OPTION]" in done.text
    assert "headrace.toml" in done.text
    assert built.hr.spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_other_settings_are_free(built: Shop, model: Write) -> None:
    hook = "set spark.sql.shuffle.partitions = 3"
    model("hooked", f'{{{{ config(materialized="table", pre_hook="{hook}") }}}} select 1 as x')
    former = built.hr.spark.conf.get("spark.sql.shuffle.partitions")
    try:
        assert built.dbt("run", "--select", "hooked").success
    finally:
        built.hr.spark.conf.set("spark.sql.shuffle.partitions", former or "200")
        built.hr.spark.sql("DROP TABLE IF EXISTS lake.jaffle.hooked")
