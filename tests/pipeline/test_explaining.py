"""`explain`: the algebra, the change before and after the rewrites, the SQL and the physical choice, for both modes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headrace
from headrace.api.facade import Headrace
from headrace.errors import Unsupported, UserError
from headrace.results.refresh_results import Explanation, Mode

QUERY = "SELECT k, count(*) AS n, max(v) AS most FROM {ns}.t WHERE v > 0 GROUP BY k"
HEADS = ["algebra", "companion", "delta by the rules (all sources changed)", "delta after the rewrites"]
STAGES = [f"{mode}: {what}" for mode in ("DIFFERENTIAL", "FULL") for what in ("stages", "SQL")]


@pytest.fixture
def source(hr: Headrace, ns: str) -> str:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, v INT) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 10), (2, 0)")
    return f"lake.{ns}.t"


def titles(found: Explanation) -> list[str]:
    return [title for title, _ in found.sections]


def test_a_stream_table(hr: Headrace, ns: str, source: str) -> None:
    name = f"{ns}.s"
    hr.create_stream_table(name, QUERY.format(ns=ns), refresh_mode="DIFFERENTIAL")
    idle = hr.explain(name)
    assert idle.mode is Mode.NO_CHANGE
    assert dict(idle.sections)["stages"] == "nothing to do"
    assert f"`change of {ns}.t`" in dict(idle.sections)["DIFFERENTIAL: SQL (all sources changed)"]
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 11)")
    found = hr.explain(name)
    assert titles(found) == [*HEADS, "choice", *STAGES]
    parts = dict(found.sections)
    assert "mode DIFFERENTIAL" in parts["choice"]
    assert f"{ns}.t at version" in parts["choice"]
    assert "read change of" in parts["DIFFERENTIAL: stages"]
    assert "overwrite" in parts["FULL: stages"]
    assert "CHANGE" in parts[HEADS[-2]]
    assert parts[HEADS[-2]] != parts[HEADS[-1]]
    assert parts["FULL: SQL"].count("INSERT OVERWRITE") == 2
    full = hr.explain(name, refresh_mode="FULL")
    assert (full.mode, titles(full)) == (Mode.FULL, [*HEADS, "choice", *STAGES[2:]])
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL


def test_a_query(hr: Headrace, ns: str, source: str) -> None:
    found = hr.explain_query(QUERY.format(ns=ns))
    assert (found.mode, found.reason) == (Mode.DIFFERENTIAL, None)
    assert titles(found) == [*HEADS, "DIFFERENTIAL: SQL (all sources changed)", "FULL: SQL"]


def test_what_is_not_maintained_has_one_mode(hr: Headrace, ns: str, source: str) -> None:
    query = f"SELECT k, rand() AS r FROM {ns}.t"
    found = hr.explain_query(query)
    assert (found.mode, titles(found)) == (Mode.FULL, ["FULL: SQL"])
    with pytest.raises(Unsupported) as caught:
        hr.explain_query(query, refresh_mode="DIFFERENTIAL")
    assert caught.value.place is not None
    hr.create_stream_table(f"{ns}.s", query)
    assert titles(hr.explain(f"{ns}.s")) == ["choice", *STAGES[2:]]


def test_passes(hr: Headrace, ns: str, source: str) -> None:
    name = f"{ns}.s"
    query = f"SELECT a.k, sum(b.v) AS s FROM {ns}.t a JOIN {ns}.t b ON a.k = b.k WHERE a.v > 0 GROUP BY a.k"
    hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 11)")
    found = hr.explain(name, passes=True)
    assert titles(found) == ["choice", "passes"]
    fired = {info.name: info for info in found.passes if info.fired}
    assert "operators" in fired["column_pruning"].change
    assert fired["column_pruning"].seconds_before is not None
    assert fired["column_pruning"].seconds_after is not None
    idle = {info.name: info.change for info in found.passes if not info.fired}
    assert idle["inner_recursion"] == "nothing to change"
    assert not fired.keys() & idle.keys()
    assert all(info.name in dict(found.sections)["passes"] for info in found.passes)
    assert "passes" in found.as_dict()
    alone = hr.explain_query(query, passes=True)
    assert {info.seconds_before for info in alone.passes} == {None}
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL


def test_passes_that_are_switched_off(hr: Headrace, ns: str, source: str) -> None:
    """A table is defined again when other passes decide what its companion keeps; results stay equal."""
    query = f"SELECT k, v FROM {ns}.t WHERE v >= (SELECT avg(v) FROM {ns}.t)"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    settings = replace(hr.settings, disabled_passes=("inner_aggregates", "read_once"))
    with headrace.open(settings, spark=hr.spark) as without:
        passes = {info.name: info.change for info in without.explain_query(query, passes=True).passes}
        assert passes["inner_aggregates"] == "switched off"
        assert without.refresh(f"{ns}.s", full=False).mode is Mode.FULL
        hr.spark.sql(f"INSERT INTO {source} VALUES (3, 30)")
        assert without.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
        assert without.verify(f"{ns}.s").ok
    assert hr.refresh(f"{ns}.s").mode is Mode.FULL
    assert hr.verify(f"{ns}.s").ok
    unknown = replace(hr.settings, disabled_passes=("read_onze",))
    with headrace.open(unknown, spark=hr.spark) as wrong, pytest.raises(UserError, match="read_onze"):
        wrong.explain_query(query)
