"""`explain`: the algebra, the change before and after the rewrites, the SQL and the physical choice, for both modes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headrace
from headrace.api.facade import Headrace
from headrace.errors import Unsupported, UserError
from headrace.names import TableName
from headrace.optimizer import cardinality
from headrace.results.refresh_results import Explanation, Mode
from headrace.statistics.observations import Strategy, StrategyFailed

QUERY = "SELECT k, count(*) AS n, max(v) AS most FROM {ns}.t WHERE v > 0 GROUP BY k"
HEADS = ["algebra", "companion", "delta by the rules (all sources changed)", "delta after the rewrites"]
STAGES = [f"{mode}: {what}" for mode in ("DIFFERENTIAL", "FULL") for what in ("stages", "SQL")]


@pytest.fixture
def source(hr: Headrace, ns: str) -> str:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg AS SELECT * FROM VALUES (1, 10), (2, 0) AS t(k, v)")
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
    assert titles(found) == ["settings", *HEADS, "choice", *STAGES]
    parts = dict(found.sections)
    assert "mode DIFFERENTIAL" in parts["choice"]
    assert f"{ns}.t at version" in parts["choice"]
    assert "read change of" in parts["DIFFERENTIAL: stages"]
    assert "overwrite" in parts["FULL: stages"]
    assert "CHANGE" in parts[HEADS[-2]]
    assert parts[HEADS[-2]] != parts[HEADS[-1]]
    assert parts["FULL: SQL"].count("INSERT OVERWRITE") == 2
    full = hr.explain(name, refresh_mode="FULL")
    assert (full.mode, titles(full)) == (Mode.FULL, ["settings", *HEADS, "choice", *STAGES[2:]])
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL


def test_a_strategy_that_failed_is_not_explained(
    hr: Headrace, ns: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cardinality, "SENT_UNASKED", 0)
    name = f"{ns}.s"
    hr.spark.sql(f"CREATE TABLE lake.{ns}.u USING iceberg AS SELECT id AS k, id * 2 AS w FROM range(100000)")
    query = f"SELECT t.k, t.v, u.w FROM {ns}.t LEFT JOIN {ns}.u ON u.k = t.k"
    hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 11)")
    assert "BROADCAST" in dict(hr.explain(name).sections)["DIFFERENTIAL: SQL"]
    table = TableName("lake", (ns,), "s")
    hr._engine().refresher.statistics.observe(StrategyFailed(Strategy.BROADCAST, table, ()))
    assert "BROADCAST" not in dict(hr.explain(name).sections)["DIFFERENTIAL: SQL"]


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
    assert titles(hr.explain(f"{ns}.s")) == ["settings", "choice", *STAGES[2:]]


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
    shown = dict(found.sections)["passes"]
    assert all(info.name in shown for info in found.passes)
    assert all(shown.count(f"claim: {info.claim}") == 1 for info in fired.values())
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


TOTALS = "SELECT k, sum(v) AS total, max(v) AS most FROM {ns}.t WHERE v >= 0 GROUP BY k"


def test_what_a_refresh_did(hr: Headrace, ns: str, source: str, over_connect: bool) -> None:
    name = f"{ns}.analysed"
    hr.create_stream_table(name, TOTALS.format(ns=ns), refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 11), (3, 5), (1, 1)")
    found = hr.explain(name, analyze=True)
    assert found.mode is Mode.DIFFERENTIAL
    assert titles(found) == ["summary", "steps"]
    assert len(dict(found.sections)["summary"].split("\n")) == 5
    assert "result: 2 rows inserted, 1 deleted" in dict(found.sections)["summary"]
    assert "__hr_" not in str(found.as_dict())
    by_title = {step.title: step for step in found.steps}
    assert by_title[f"change of {ns}.t"].estimated_rows == 3
    change = by_title["change"]
    kept = (None, "MATERIALIZE") if over_connect else (3, "LOCAL")  # the group that stays, too
    assert (change.rows, change.kept, change.skipped) == (*kept, None)
    assert change.operators[0] == "full join by k"
    assert change.operators[-2:] == (f"      change of {ns}.t", "  the companion")
    assert change.seconds > 0
    stored = {step.title: step.rows for step in found.steps if step.kept == "STORED"}
    assert stored == {"the stored result, by overwrite": 3, "the companion, by overwrite": 3}
    assert hr.history(name)[0].rows_inserted == 2


def test_a_step_that_was_not_needed_says_why(hr: Headrace, ns: str, source: str) -> None:
    """Which group has lost its greatest value decides whether rows are read again."""
    name = f"{ns}.analysed"
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 11), (1, 1)")
    hr.create_stream_table(name, TOTALS.format(ns=ns), refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"DELETE FROM {source} WHERE v = 1")
    found = {step.title: step for step in hr.explain(name, analyze=True).steps}
    assert found["rescanned"].skipped == "not computed: what it is for did not occur"
    hr.spark.sql(f"DELETE FROM {source} WHERE v = 11")
    found = {step.title: step for step in hr.explain(name, analyze=True).steps}
    assert found["rescanned"].skipped is None
    assert hr.verify(name).ok


def test_a_refresh_without_anything_to_do_says_so(hr: Headrace, ns: str, source: str) -> None:
    name = f"{ns}.idle"
    hr.create_stream_table(name, TOTALS.format(ns=ns))
    found = hr.explain(name, analyze=True)
    assert (found.mode, found.steps) == (Mode.NO_CHANGE, ())
    assert "There is nothing new to read" in found.sections[0][1]


def test_a_full_refresh_is_analysed_too(hr: Headrace, ns: str, source: str) -> None:
    name = f"{ns}.whole"
    hr.create_stream_table(name, TOTALS.format(ns=ns), refresh_mode="FULL")
    hr.spark.sql(f"INSERT INTO {source} VALUES (1, 12)")
    (step,) = hr.sql(f"EXPLAIN ANALYZE STREAM TABLE {name}").steps
    assert (step.kept, step.rows) == ("STORED", 2)


def test_only_a_stream_table_is_analysed_and_alone(hr: Headrace, ns: str, source: str) -> None:
    with pytest.raises(UserError) as failure:
        hr.explain(f"{ns}.t", analyze=True)
    assert failure.value.code == "STREAM_TABLE_NOT_FOUND"
    with pytest.raises(UserError) as failure:
        hr.explain(f"{ns}.t", analyze=True, passes=True)
    assert failure.value.code == "INVALID_OPTION"
    with pytest.raises(UserError) as failure:
        hr.explain(f"SELECT * FROM {ns}.t", analyze=True)
    assert failure.value.code == "INVALID_OPTION"


def test_rows_appended_are_told_not_all_there_are(hr: Headrace, ns: str, source: str) -> None:
    """To a table that only gains rows, and to a change log."""
    hr.create_stream_table(f"{ns}.gains", f"SELECT k, v FROM {ns}.t WHERE v > 5", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.logged", TOTALS.format(ns=ns), refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.reader", f"SELECT count(*) AS n FROM {ns}.logged", refresh_mode="DIFFERENTIAL")
    for number in (1, 2):
        hr.spark.sql(f"INSERT INTO {source} VALUES (1, {number + 20}), (3, 6)")
        (append,) = [s for s in hr.explain(f"{ns}.gains", analyze=True).steps if s.kept == "STORED"]
        assert (append.title, append.rows) == ("the stored result, by append", 2)
        steps = {s.title: s.rows for s in hr.explain(f"{ns}.logged", analyze=True).steps}
        assert steps["the change log, by append"] == (3 if number == 1 else 4)
        assert hr.explain(f"{ns}.reader", analyze=True).steps
