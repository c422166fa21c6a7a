"""Blue-green on Spark: greens beside public tables, exchanged at one cut, and taken back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from kit.refresh_reasons import CHEAPER

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.events import Event, StageStarted
from headrace.physical import stage_planner
from headrace.reasons import FullReason

PIPELINE = """
CREATE TABLE {ns}.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg;
INSERT INTO {ns}.orders VALUES (1, 'EU', 10.00), (2, 'US', 20.00), (3, 'EU', 5.00);
CREATE STREAM TABLE {ns}.lines AS SELECT id, region, amount FROM {ns}.orders WHERE amount > 0;
CREATE STREAM TABLE {ns}.totals AS SELECT region, sum(amount) AS total, count(*) AS n FROM {ns}.lines GROUP BY region;
CREATE STREAM TABLE {ns}.outside REFRESH MODE DIFFERENTIAL AS SELECT region, total FROM {ns}.totals WHERE total > 6
"""


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in hr.spark.table(f"lake.{table}").collect())


def all_ok(hr: Headrace, ns: str) -> bool:
    return all(v.ok for v in hr.verify([t.name for t in hr.status() if t.name.startswith(ns)]))


def test_a_promotion_puts_plain_values_in_place(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a table that was stored before zeros lost their sign, and maps were sorted."""
    hr.spark.sql(f"CREATE TABLE lake.{ns}.z (k INT, x DOUBLE, m MAP<STRING, STRING>) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.z VALUES (1, -0.0D, map('b', '1', 'a', '2'))")
    with monkeypatch.context() as formerly:
        formerly.setattr(stage_planner, "in_plain_values", lambda query, columns: query)
        hr.create_stream_table(f"{ns}.s", f"SELECT k, x, m FROM {ns}.z", refresh_mode="DIFFERENTIAL")
    texts = f"SELECT k, CAST(x AS STRING) AS x, to_json(m) AS m FROM {ns}.s"
    hr.create_stream_table(f"{ns}.r", texts, refresh_mode="DIFFERENTIAL")
    assert rows(hr, f"{ns}.r") == [(1, "-0.0", '{"b":"1","a":"2"}')]
    hr.create_green(f"{ns}.s")
    hr.promote_all_green()
    hr.refresh()
    assert rows(hr, f"{ns}.r") == [(1, "0.0", '{"a":"2","b":"1"}')]
    assert all_ok(hr, ns)
    hr.rollback_green(f"{ns}.s")
    hr.refresh()
    assert all_ok(hr, ns)
    hr.cancel_green(f"{ns}.s")


def test_a_deployment_is_promoted_and_taken_back(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    hr.create_green(
        f"{ns}.lines",
        f"SELECT id, region, CAST(amount * 2 AS DECIMAL(12,2)) AS amount FROM {ns}.orders WHERE amount > 6",
    )
    hr.create_green(f"{ns}.totals")
    assert rows(hr, f"{ns}__green.totals") == [("EU", 20, 1), ("US", 40, 1)]
    assert {(i.state, i.converged) for i in hr.green_status(deployment="green")} == {("converged", True)}

    hr.sql(f"INSERT INTO {ns}.orders VALUES (4, 'AS', 7.00)")
    hr.refresh(f"{ns}.lines")
    (late,) = hr.green_status(f"{ns}.lines")
    assert (late.state, late.lag_versions, late.lag_rows) == (
        "catching up",
        {f"{ns}.orders": 1},
        {f"{ns}.orders": 1},
    )
    with pytest.raises(HeadraceError) as refused:
        hr.promote_all_green()
    assert refused.value.code == "GREEN_BEHIND"
    hr.refresh()
    version = hr.status([f"{ns}.totals"])[0].version or 0
    past, old = hr.at(), rows(hr, f"{ns}.totals")
    at = hr.history(f"{ns}.totals")[0].publication

    promoted = hr.promote_all_green()
    assert [t.name for t in promoted.tables] == [f"{ns}.lines", f"{ns}.totals"]
    assert rows(hr, f"{ns}.totals") == [("AS", 14, 1), ("EU", 20, 1), ("US", 40, 1)]
    assert rows(hr, f"{ns}__green_previous.totals") == old
    assert sorted(map(tuple, past.table(f"{ns}.totals").collect())) == old
    assert at is not None
    assert sorted(map(tuple, hr.at(at).table(f"{ns}.totals").collect())) == old
    assert hr.status([f"{ns}.totals"])[0].version == version + 1

    hr.sql(f"INSERT INTO {ns}.orders VALUES (5, 'EU', 9.00)")
    results = {r.name: r for r in hr.refresh()}
    assert {r.reason for r in results.values()} <= CHEAPER
    assert results[f"{ns}.outside"].mode.value == "DIFFERENTIAL"
    assert rows(hr, f"{ns}.outside") == [("AS", 14), ("EU", 38), ("US", 40)]
    assert all_ok(hr, ns)

    hr.rollback_green(deployment="green")
    assert rows(hr, f"{ns}.totals") == [("AS", 7, 1), ("EU", 24, 3), ("US", 20, 1)]
    assert rows(hr, f"{ns}__green.totals") == [("AS", 14, 1), ("EU", 38, 2), ("US", 40, 1)]
    assert hr.refresh(f"{ns}.outside").mode.value == "DIFFERENTIAL"

    assert hr.cancel_green(deployment="green") == (f"{ns}__green.lines", f"{ns}__green.totals")
    assert not [t.name for t in hr.status() if t.name.startswith(f"{ns}__")]
    hr.sql(f"DELETE FROM {ns}.orders WHERE id = 1")
    assert {r.reason for r in hr.refresh()} <= CHEAPER
    assert all_ok(hr, ns)


def test_columns_come_and_go(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    hr.create_green(
        f"{ns}.totals",
        f"""SELECT max(amount) AS most, region, CAST(count(*) AS INT) AS n, sum(amount) AS total
        FROM {ns}.lines GROUP BY region""",
    )
    hr.sql(f"INSERT INTO {ns}.orders VALUES (4, 'EU', 1.00)")
    created = list[str]()

    def read_meanwhile(event: Event) -> None:
        if isinstance(event, StageStarted) and not created:
            created.append(f"{ns}.late")
            hr.create_stream_table(f"{ns}.late", f"SELECT n FROM {ns}.totals")

    unsubscribe = hr.events.subscribe(read_meanwhile)
    assert code_of(lambda: hr.promote_green(f"{ns}.totals")) == "READERS_BROKEN"  # n has another type
    unsubscribe()
    assert created
    assert hr.spark.table(f"lake.{ns}.totals").columns == ["region", "total", "n"]
    hr.drop_stream_table(f"{ns}.late")
    hr.sql(f"DELETE FROM {ns}.orders WHERE id = 4")
    hr.promote_green(f"{ns}.totals")
    assert hr.spark.table(f"lake.{ns}.totals").columns == ["most", "region", "n", "total"]
    assert rows(hr, f"{ns}.totals") == [(10, "EU", 2, 15), (20, "US", 1, 20)]
    assert rows(hr, f"{ns}__green_previous.totals") == [("EU", 15, 2), ("US", 20, 1)]
    hr.sql(f"INSERT INTO {ns}.orders VALUES (5, 'EU', 90.00)")
    assert {r.name: r.mode.value for r in hr.refresh()}[f"{ns}.outside"] == "DIFFERENTIAL"
    assert rows(hr, f"{ns}.outside") == [("EU", 105), ("US", 20)]
    hr.rollback_green(f"{ns}.totals")
    assert rows(hr, f"{ns}.totals") == [("EU", 105, 3), ("US", 20, 1)]
    assert all_ok(hr, ns)
    hr.cancel_green(f"{ns}.totals")


def test_readers_outside_are_named_and_stopped_only_by_force(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    hr.create_green(f"{ns}.totals", f"SELECT region, count(*) AS n FROM {ns}.lines GROUP BY region")
    with pytest.raises(HeadraceError) as refused:
        hr.promote_green(f"{ns}.totals")
    assert refused.value.code == "READERS_BROKEN"
    assert f"{ns}.outside: column total of {ns}.totals is gone" in refused.value.message
    assert hr.promote_green(f"{ns}.totals", dry_run=True).broken[0].reader == f"{ns}.outside"
    hr.promote_green(f"{ns}.totals", force=True)
    assert hr.status([f"{ns}.outside"])[0].status.value == "STOPPED"
    hr.rollback_green(f"{ns}.totals")
    assert hr.refresh(f"{ns}.outside").reason is FullReason.SCHEMA_CHANGED
    hr.sql(f"INSERT INTO {ns}.orders VALUES (5, 'EU', 90.00)")
    assert {r.name: r.mode.value for r in hr.refresh()}[f"{ns}.outside"] == "DIFFERENTIAL"
    assert all_ok(hr, ns)
    hr.cancel_green(f"{ns}.totals")


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(HeadraceError) as refused:
        act()
    return refused.value.code


def test_what_makes_no_sense_is_refused_and_changes_nothing(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    lines, totals, green = f"{ns}.lines", f"{ns}.totals", f"{ns}__v2.lines"
    reads_outside = f"SELECT region AS id, region, total AS amount FROM {ns}.outside"
    assert code_of(lambda: hr.create_green(f"{ns}.nothing")) == "STREAM_TABLE_NOT_FOUND"
    assert code_of(lambda: hr.create_green(lines, deployment="v2_previous")) == "INVALID_NAME"
    assert code_of(lambda: hr.create_green(lines, f"SELECT nothing FROM {ns}.orders")) == "COLUMN_NOT_FOUND"
    assert code_of(lambda: hr.create_green(lines, reads_outside)) == "CYCLE"
    assert code_of(lambda: hr.create_green(lines, f"SELECT raise_error('no') AS x FROM {ns}.orders")) != "CYCLE"
    assert code_of(lambda: hr.promote_green(lines)) == "DEPLOYMENT_NOT_FOUND"
    assert hr.green_status() == ()

    hr.sql(f"CREATE GREEN STREAM TABLE {lines} IN DEPLOYMENT v2 INITIALIZE FALSE")
    assert code_of(lambda: hr.promote_green(lines)) == "GREEN_LOADING"
    assert hr.green_status(lines)[0].state == "loading"
    hr.refresh(green)
    assert code_of(lambda: hr.create_green(green)) == "GREEN_OF_GREEN"
    assert code_of(lambda: hr.create_green(lines, deployment="v3")) == "IN_DEPLOYMENT"
    assert code_of(lambda: hr.drop_stream_table(lines, cascade=True)) == "IN_DEPLOYMENT"
    assert code_of(lambda: hr.drop_stream_table(green)) == "IN_DEPLOYMENT"
    assert code_of(lambda: hr.create_stream_table(green, "SELECT 1 AS x", or_replace=True)) == "IN_DEPLOYMENT"
    assert code_of(lambda: hr.create_stream_table(f"{ns}.x", f"SELECT * FROM {green}")) == "GREEN_SOURCE"
    by_its_own_name = f"SELECT count(*) AS n FROM {green}"
    assert code_of(lambda: hr.create_green(totals, by_its_own_name, deployment="v2")) == "GREEN_SOURCE"
    assert code_of(lambda: hr.rollback_green(lines)) == "NOT_PROMOTED"
    hr.create_green(totals, deployment="v2", initialize=False)
    assert code_of(lambda: hr.promote_green(lines)) == "DEPLOYMENT_TORN"
    assert code_of(lambda: hr.cancel_green(lines)) == "DEPLOYMENT_TORN"
    hr.cancel_green(totals)

    hr.alter_stream_table(lines, schedule="5 minutes")
    assert code_of(lambda: hr.promote_green(lines)) == "GREEN_OUTDATED"
    hr.alter_stream_table(lines, clear_schedule=True)
    assert hr.promote_green(lines, verify=True, rollback_window=dt.timedelta(0)).tables[0].rows_inserted == 0
    assert code_of(lambda: hr.promote_green(lines)) == "ALREADY_PROMOTED"
    assert code_of(lambda: hr.rollback_green(lines)) == "ROLLBACK_EXPIRED"
    hr.maintain()
    assert hr.green_status() == ()
    assert all_ok(hr, ns)


def test_last_digits_of_sums_are_no_difference(hr: Headrace, ns: str) -> None:
    """Spark does not fix the order in which it adds doubles: 30,000 groups that may each have two results."""
    hr.spark.sql(
        f"CREATE TABLE lake.{ns}.o USING iceberg AS SELECT id % 30000 AS k, rand(7) * pow(10, id % 7) AS x "
        "FROM range(0, 360000, 1, 8)"
    )
    query = f"SELECT k, sum(x) AS total FROM {ns}.o GROUP BY k"
    hr.create_stream_table(f"{ns}.sums", query, refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.o SELECT id % 30000, rand(3) FROM range(0, 40, 1, 2)")
    hr.refresh(f"{ns}.sums")
    for _ in range(2):
        found = hr.verify(f"{ns}.sums")
        assert (found.ok, found.rows, found.missing, found.unexpected) == (True, 30_000, 0, 0)
    hr.create_green(f"{ns}.sums", deployment="same")
    assert hr.promote_green(f"{ns}.sums", verify=True).tables[0].name == f"{ns}.sums"
    hr.rollback_green(f"{ns}.sums")
    hr.cancel_green(f"{ns}.sums")

    hr.create_stream_table(f"{ns}.drawn", f"SELECT k, rand() AS x FROM {ns}.o WHERE k < 5", refresh_mode="FULL")
    hr.create_green(f"{ns}.drawn", deployment="other")
    assert code_of(lambda: hr.promote_green(f"{ns}.drawn", verify=True)) == "GREEN_DIFFERS"
    hr.cancel_green(f"{ns}.drawn")


def test_schedulers_promote_by_themselves_and_take_back_what_they_watch(hr: Headrace, ns: str) -> None:
    hr.sql(PIPELINE.format(ns=ns))
    check = f"SELECT region FROM {ns}.totals WHERE total > 30"
    assert code_of(lambda: hr.auto_promote("green", {})) == "DEPLOYMENT_NOT_FOUND"
    wrong = {"check": f"SELECT missing FROM {ns}.totals"}
    assert code_of(lambda: hr.create_green(f"{ns}.totals", auto_promote=wrong)) == "COLUMN_NOT_FOUND"
    assert hr.green_status() == ()
    hr.create_green(
        f"{ns}.totals",
        f"""SELECT region, CAST(sum(amount) * 2 AS DECIMAL(22,2)) AS total, count(*) AS n
        FROM {ns}.lines GROUP BY region""",
        auto_promote={
            "check_small": check,
            "check_n": f"SELECT n FROM {ns}.totals WHERE n < 0",  # which the public table does not have
            "watch": "1 hour",
            "lag_threshold": "1 minute",
        },
    )
    assert code_of(lambda: hr.auto_promote("green", {"check": f"SELECT x FROM {ns}.totals"})) == "COLUMN_NOT_FOUND"
    hr.run(once=True)  # the public table has no such rows, the green has
    (info,) = hr.green_status(f"{ns}.totals")
    assert (info.state, info.watched_until) == ("converged", None)
    assert info.refused is not None
    assert info.refused.startswith("CHECK_FAILED: Check small finds 1 row(s)")
    assert code_of(lambda: hr.promote_all_green(dry_run=True, checks={"small": check})) == "CHECK_FAILED"
    assert hr.promote_all_green(dry_run=True, checks={"small": f"{check} + 10"}).dry_run

    hr.sql(f"ALTER DEPLOYMENT green AUTO PROMOTE (check_small = '{check} + 10', watch = '1 hour')")
    hr.run(once=True)
    (info,) = hr.green_status(f"{ns}.totals")
    assert (info.state, info.on_trouble, info.auto_promote) == ("promoted", "rollback", None)
    assert rows(hr, f"{ns}.totals") == [("EU", 30, 2), ("US", 40, 1)]

    hr.sql(f"INSERT INTO {ns}.orders VALUES (9, 'US', 1.00)")
    hr.refresh()
    hr.run(once=True)
    assert rows(hr, f"{ns}.totals") == [("EU", 15, 2), ("US", 21, 2)]
    entry = hr.history(f"{ns}.totals")[0]
    assert "check small finds 1 row(s)" in (entry.detail or "")
    assert [e.event for e in hr.event_log() if e.event in ("promoted", "promotion_refused", "rolled_back")][-3:] == [
        "promotion_refused",
        "promoted",
        "rolled_back",
    ]
    hr.run(once=True)
    assert hr.green_status(f"{ns}.totals")[0].state == "converged"
    assert all_ok(hr, ns)
    hr.cancel_green(f"{ns}.totals")
