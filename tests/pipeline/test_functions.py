"""Python functions of a project: kept fresh by the change, recomputed when a body changes, missed in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError, UserError

FUNCTIONS = """
import random

import headrace

RATES = {"EU": 2, "US": 3}


def rate_of(region):
    return RATES.get(region, 1)


@headrace.function(returns="bigint")
def rated(region, amount):
    return None if amount is None else amount * rate_of(region)


@headrace.function(returns="double")
def middle(values):
    return float(values[len(values) // 2]) if values else None


@headrace.function(returns="double", deterministic=False)
def jitter(x):
    return x + random.random()


@headrace.function(returns="int")
def failing(x):
    raise ValueError(f"no {x} today")
"""


@pytest.fixture
def file(hr: Headrace, ns: str) -> Iterator[Path]:
    file = hr.settings.root / "functions.py"
    file.write_text(FUNCTIONS, encoding="utf-8")
    rows = "VALUES (1L, 'EU', 10L), (2L, 'US', 20L), (3L, NULL, NULL) AS t(id, region, amount)"
    hr.sql(f"CREATE TABLE lake.{ns}.o USING iceberg AS SELECT * FROM {rows}")
    yield file
    for table in [t.name for t in hr.status() if t.name.startswith(f"{ns}.")]:
        hr.drop_stream_table(table, if_exists=True, cascade=True)
    file.unlink()
    hr.functions()  # has it noticed that the file is gone


def rows(hr: Headrace, name: str) -> set[tuple[object, ...]]:
    return {tuple(row) for row in hr.spark.table(f"lake.{name}").collect()}


def test_functions_are_maintained_and_a_changed_body_recomputes(hr: Headrace, ns: str, file: Path) -> None:
    sums = f"""SELECT region, sum(rated(region, amount)) AS total, middle(sort_array(collect_list(amount))) AS m
        FROM {ns}.o GROUP BY region"""
    hr.create_stream_table(f"{ns}.sums", sums, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(
        f"{ns}.plain", f"SELECT id, Rated(region, amount) AS v FROM {ns}.o WHERE rated(region, amount) > 5"
    )
    hr.create_stream_table(f"{ns}.without", f"SELECT id FROM {ns}.o")
    hr.sql(f"INSERT INTO lake.{ns}.o VALUES (4, 'EU', 30), (5, 'ZZ', 7)")
    assert hr.refresh(f"{ns}.sums").mode == "DIFFERENTIAL"
    hr.refresh([f"{ns}.plain", f"{ns}.without"])
    assert rows(hr, f"{ns}.sums") == {("EU", 80, 30.0), ("US", 60, 20.0), (None, None, None), ("ZZ", 7, 7.0)}
    assert rows(hr, f"{ns}.plain") == {(1, 20), (2, 60), (4, 60), (5, 7)}

    file.write_text(FUNCTIONS.replace('"EU": 2', '"EU": 5'), encoding="utf-8")
    (info,) = (f for f in hr.functions() if f.name == "rated")
    assert info.to_recompute == (f"{ns}.plain", f"{ns}.sums")
    with pytest.raises(UserError, match="FUNCTION_CHANGED"):
        hr.verify(f"{ns}.sums")
    assert hr.explain(f"{ns}.sums").reason == "FUNCTION_CHANGED"
    results = {r.name: r for r in hr.refresh() if r.name.startswith(f"{ns}.")}  # no source has moved
    assert {name: r.reason for name, r in results.items()} == dict.fromkeys(
        (f"{ns}.sums", f"{ns}.plain"), "FUNCTION_CHANGED"
    )
    assert rows(hr, f"{ns}.plain") == {(1, 50), (2, 60), (4, 150), (5, 7)}
    hr.sql(f"DELETE FROM lake.{ns}.o WHERE id = 4")
    assert hr.refresh(f"{ns}.sums").mode == "DIFFERENTIAL"
    assert hr.verify(f"{ns}.sums").ok


def test_one_that_is_not_deterministic_is_recomputed(hr: Headrace, ns: str, file: Path) -> None:
    query = f"SELECT id, jitter(id) AS v FROM {ns}.o"
    with pytest.raises(HeadraceError, match="NOT_MAINTAINABLE") as caught:
        hr.create_stream_table(f"{ns}.j", query, refresh_mode="DIFFERENTIAL")
    assert caught.value.place is not None
    assert hr.validate(query).reason == "NOT_DETERMINISTIC"


def test_what_is_missing_or_broken_is_told_and_changes_nothing(hr: Headrace, ns: str, file: Path) -> None:
    hr.create_stream_table(f"{ns}.p", f"SELECT id, rated(region, amount) AS v FROM {ns}.o")
    before = rows(hr, f"{ns}.p")
    for text, code, said in (
        (FUNCTIONS.replace("def rated", "def rated_no_more"), "FUNCTION_NOT_FOUND", f"{ns}.p calls rated()"),
        ("import not_there", "FUNCTION_INVALID", "No module named 'not_there' (line 1)"),
        (FUNCTIONS.replace('"bigint"', '"number"'), "FUNCTION_INVALID", "Function rated"),
        (FUNCTIONS.replace("def rated", "def upper"), "FUNCTION_INVALID", "Spark has a function of that name"),
        (
            FUNCTIONS.replace("def rate_of", "import threading\nL = threading.Lock()\ndef rate_of").replace(
                "RATES.get", "L and RATES.get"
            ),
            "FUNCTION_INVALID",
            "Function rated",
        ),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=code) as caught:
            hr.refresh(f"{ns}.p")
        assert said in str(caught.value)
        assert rows(hr, f"{ns}.p") == before
    file.write_text(FUNCTIONS, encoding="utf-8")
    assert hr.refresh(f"{ns}.p").mode == "NO_CHANGE"


def test_one_that_raises_fails_the_statement_in_words(hr: Headrace, ns: str, file: Path) -> None:
    with pytest.raises(UserError, match="FUNCTION_FAILED") as caught:
        hr.create_stream_table(f"{ns}.f", f"SELECT id, failing(id) AS v FROM {ns}.o")
    assert "ValueError: no 1 today" in caught.value.message
    assert "Traceback" not in str(caught.value)
    assert not [t for t in hr.status() if t.name == f"{ns}.f"]


def test_one_that_is_registered_by_hand(hr: Headrace, ns: str, file: Path) -> None:
    hr.register_function("tripled", lambda x: None if x is None else 3 * x, returns="bigint")
    hr.create_stream_table(f"{ns}.t", f"SELECT id, tripled(amount) AS v FROM {ns}.o", refresh_mode="DIFFERENTIAL")
    hr.sql(f"INSERT INTO lake.{ns}.o VALUES (9, 'EU', 5)")
    assert hr.refresh(f"{ns}.t").mode == "DIFFERENTIAL"
    assert (9, 15) in rows(hr, f"{ns}.t")
    hr.register_function("tripled", lambda x: None if x is None else 30 * x, returns="bigint")
    assert hr.refresh(f"{ns}.t").reason == "FUNCTION_CHANGED"
    assert (9, 150) in rows(hr, f"{ns}.t")


def test_one_that_nobody_knows_is_told(hr: Headrace, ns: str, file: Path) -> None:
    with pytest.raises(UserError, match="FUNCTION_NOT_FOUND"):
        hr.validate(f"SELECT nobodys(id) AS v FROM {ns}.o")
