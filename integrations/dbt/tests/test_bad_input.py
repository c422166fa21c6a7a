"""Bad input ends in dbt's error with Headrace's message and code; nothing is made, and no stack trace shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jaffle import Shop

Write = Callable[[str, str], Path]

ORDERS = "select order_id from {{ ref('orders') }}"

MODELS = (
    ("refresh_mode='DIFFERENTIAL'", "select order_id, rand() as r from {{ ref('orders') }}", "NOT_MAINTAINABLE"),
    ("", "select nothing from {{ ref('orders') }}", "COLUMN_NOT_FOUND"),
    ("", "selekt order_id from {{ ref('orders') }}", "SYNTAX_ERROR"),
    ("", "select * from nowhere.at_all", "TABLE_NOT_FOUND"),
    ("", "select 1 / 0 as x from {{ ref('orders') }}", "ARITHMETIC_ERROR"),
    ("properties={'teir': 'warm'}", ORDERS, "INVALID_OPTION"),
    ("properties={'tier': 'lukewarm'}", ORDERS, "INVALID_OPTION"),
    ("properties='tier'", ORDERS, "INVALID_OPTION"),
    ("schedule='now and then'", ORDERS, "INVALID_SCHEDULE"),
    ("schedule='1 minute', target_lag='1 minute'", ORDERS, "INVALID_OPTION"),
    ("refresh_mode='FAST'", ORDERS, "INVALID_OPTION"),
)


@pytest.mark.parametrize(("config", "query", "code"), MODELS, ids=[f"{m[2]}-{i}" for i, m in enumerate(MODELS)])
def test_models(built: Shop, model: Write, config: str, query: str, code: str) -> None:
    given = f", {config}" if config else ""
    model("bad", f"{{{{ config(materialized='stream_table'{given}) }}}}\n{query}")
    done = built.dbt("run", "--select", "bad")
    assert done.statuses == {"bad": "error"}, done.text
    assert f"[{code}]" in done.results["bad"]
    assert "Traceback" not in done.text
    assert "org.apache" not in done.text
    assert "jaffle.bad" not in [info.name for info in built.hr.status()]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("project: ../nowhere\n      schema: jaffle", "[PROJECT_NOT_FOUND]"),
        ("schema: jaffle", "The profile has no `project`."),
        ("project: ../shop", "The profile has no `schema`."),
        ("project: ../shop\n      schema: jaffle\n      database: hive", "Remove it"),
        ("project: ../shop\n      schema: jaffle\n      method: session", "settings of Spark are in [spark]"),
        (
            "project: ../shop\n      schema: jaffle\n      projcet: x",
            "has `projcet`, which dbt-headrace does not know. Did you mean",
        ),
    ],
)
def test_profiles(built: Shop, tmp_path: Path, profile: str, message: str) -> None:
    (tmp_path / "profiles.yml").write_text(
        f"jaffle_shop:\n  target: dev\n  outputs:\n    dev:\n      type: headrace\n      {profile}\n"
    )
    done = built.dbt("debug", profiles=tmp_path)
    assert not done.success
    assert message in done.text
    assert "Traceback" not in done.text


def test_a_failing_test_is_told_as_such(built: Shop) -> None:
    wrong = built.folder / "tests" / "wrong.sql"
    wrong.write_text("select * from {{ ref('orders') }}", encoding="utf-8")
    done = built.dbt("test", "--select", "wrong")
    wrong.unlink()
    assert done.statuses == {"wrong": "fail"}
    assert "Got 4 results" in done.results["wrong"]
