"""Aggregates below other operators, kept in the companion: written by every refresh, whatever its mode."""

from __future__ import annotations

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.results.refresh_results import Mode

BEST = (
    "WITH r AS (SELECT k, sum(v) AS total FROM {ns}.t GROUP BY k) "
    "SELECT n.name, r.total FROM {ns}.names n JOIN r ON r.k = n.k WHERE r.total = (SELECT max(total) FROM r)"
)
ABOVE = (
    "SELECT k, count(*) AS n, min(d) AS d FROM {ns}.t CROSS JOIN "
    "(SELECT max(CAST(k AS SMALLINT)) AS d FROM {ns}.names) x "
    "WHERE v > (SELECT min(v) FROM {ns}.t) AND d >= (SELECT avg(k) FROM {ns}.names) GROUP BY k"
)


@pytest.fixture
def source(hr: Headrace, ns: str) -> str:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, v DECIMAL(12,2)) USING iceberg")
    hr.spark.sql(f"CREATE TABLE lake.{ns}.names (k INT, name STRING) USING iceberg")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 5.00), (2, 3.00), (NULL, 1.00)")
    hr.spark.sql(f"INSERT INTO lake.{ns}.names VALUES (1, 'one'), (2, 'two')")
    return ns


def companion(hr: Headrace, ns: str, name: str) -> list[str]:
    (found,) = [
        row.tableName
        for row in hr.spark.sql("SHOW TABLES IN lake._headrace").collect()
        if row.tableName.startswith(f"{ns}_{name}_") and row.tableName.endswith("_companion")
    ]
    return hr.spark.table(f"lake._headrace.{found}").columns


def test_groups_are_followed(hr: Headrace, ns: str, source: str) -> None:
    for name, query in {"best": BEST, "above": ABOVE}.items():
        hr.create_stream_table(f"{ns}.{name}", query.format(ns=ns), refresh_mode="DIFFERENTIAL")
        assert companion(hr, ns, name)[0] == "__hr_part"
    assert "below the result" in dict(hr.explain(f"{ns}.best").sections)["companion"]
    statements = (
        f"INSERT INTO lake.{ns}.t VALUES (2, 2.50), (2, NULL)",
        f"DELETE FROM lake.{ns}.t WHERE v = 5 OR k IS NULL",
        f"UPDATE lake.{ns}.names SET k = k + 1",
        f"INSERT INTO lake.{ns}.t VALUES (3, 100.00), (1, -4.00)",
    )
    names = [f"{ns}.best", f"{ns}.above"]
    for number, statement in enumerate(statements, 1):
        hr.spark.sql(statement)
        if not LONG and number in (1, 3):
            continue  # together with the next
        assert {result.mode for result in hr.refresh(names)} == {Mode.DIFFERENTIAL}
        require_equal(hr, names, statement, due=number == len(statements))


@pytest.mark.long
def test_full_refreshes_write_them(hr: Headrace, ns: str, source: str) -> None:
    name = f"{ns}.best"
    hr.create_stream_table(name, BEST.format(ns=ns))
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (2, 9.00)")
    assert hr.refresh(name, full=True).mode is Mode.FULL
    hr.create_stream_table(name, ABOVE.format(ns=ns), refresh_mode="DIFFERENTIAL", or_replace=True)
    hr.spark.sql(f"DELETE FROM lake.{ns}.t WHERE v = 9")
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL
    assert hr.verify(name).ok


@pytest.mark.parametrize("mode", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.long)])
def test_one_part_of_a_companion_changes(hr: Headrace, ns: str, mode: str) -> None:
    """The rows of the other parts stay, although none of them tells by the key of this one."""
    spark, how = hr.spark, ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE lake.{ns}.e (d STRING, s DECIMAL(10,2)) USING iceberg TBLPROPERTIES ({how})")
    spark.sql(f"CREATE TABLE lake.{ns}.b (d STRING, x DECIMAL(12,2)) USING iceberg TBLPROPERTIES ({how})")
    spark.sql(f"INSERT INTO lake.{ns}.e VALUES ('a', 10), ('b', 20), ('c', 30)")
    spark.sql(f"INSERT INTO lake.{ns}.b VALUES ('a', 100), ('q', 62), ('b', 44)")
    query = f"SELECT d, sum(s) s FROM {ns}.e GROUP BY d HAVING sum(s) > (SELECT sum(x) / 10 FROM {ns}.b)"
    hr.create_stream_table(f"{ns}.s", query, refresh_mode="DIFFERENTIAL")
    for statement in (f"DELETE FROM lake.{ns}.b WHERE d = 'q'", f"UPDATE lake.{ns}.e SET s = s + 5 WHERE d = 'a'"):
        spark.sql(statement)
        assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.s").ok
    found = spark.table(f"lake.{ns}.s").collect()
    assert {(row.d, int(row.s)) for row in found} == {("a", 15), ("b", 20), ("c", 30)}
