"""`session_window()` on Spark: maintained by the change, equal to the query, and FULL where Spark merges otherwise."""

from __future__ import annotations

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.results.refresh_results import Mode

OWN_GAPS = "session_window(ts, CASE WHEN v < 2 THEN '1 minute' WHEN v < 4 THEN gap ELSE '20 minutes' END)"
VIEWS = {
    "keyed": "SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n, sum(v) AS total, "
    "max(v) AS m, count(DISTINCT v) AS d FROM {t} GROUP BY k, session_window(ts, '5 minutes')",
    "kept as a struct": "SELECT session_window(ts, '5 minutes') AS w, count(*) AS n FROM {t} WHERE v > 0 GROUP BY 1",
    "gaps of their own": f"SELECT k % 2 AS odd, {OWN_GAPS} AS w, count(gap) AS n FROM {{t}} GROUP BY ALL "
    "HAVING count(gap) > 0",
    "without a zone": "SELECT k, session_window(n, '1 month 1 day') AS w, min(v) AS m FROM {t} GROUP BY k, w",
    "days": "SELECT session_window(CAST(ts AS DATE), '1 day').end AS e, k FROM {t} GROUP BY k, "
    "session_window(CAST(ts AS DATE), '1 day')",
    "counted again": "SELECT k, count(*) AS sessions, max(n) AS most, max(unix_seconds(w.end) - unix_seconds(w.start)) "
    "AS longest FROM (SELECT k, session_window(ts, '5 minutes') AS w, count(*) AS n FROM {t} GROUP BY k, w) GROUP BY k",
    "by their first moments": "SELECT s, count(*) AS n FROM (SELECT k, session_window.start AS s FROM {t} "
    "GROUP BY k, session_window(ts, '5 minutes')) GROUP BY s",
    "numbered": "SELECT k, w.start AS s, row_number() OVER (PARTITION BY k ORDER BY w.start) AS r "
    "FROM (SELECT k, session_window(ts, '5 minutes') AS w FROM {t} GROUP BY k, w)",
    "joined first": "SELECT a.k, session_window(b.ts, '5 minutes').start AS s, sum(a.v) AS total FROM {t} a "
    "JOIN {t} b ON a.k = b.v GROUP BY a.k, session_window(b.ts, '5 minutes')",
}

SOME = ("gaps of their own", "without a zone", "joined first")
"""Sessions with keys are those of the next test; on DuckDB all kinds are played."""


@pytest.fixture
def table(hr: Headrace, ns: str) -> str:
    table = f"lake.{ns}.t"
    hr.spark.sql(f"CREATE TABLE {table} (k INT, v INT, gap STRING, ts TIMESTAMP, n TIMESTAMP_NTZ) USING iceberg")
    hr.spark.sql(
        f"""INSERT INTO {table} SELECT id % 3, id % 7, (id % 4 - 1) || ' minutes',
        timestampadd(MINUTE, id * id % 97 * 3, TIMESTAMP '2024-10-26 22:05:00'),
        timestampadd(DAY, id * 25, TIMESTAMP_NTZ '2023-12-30 00:30:00') FROM range(40)"""
    )
    hr.spark.sql(f"""INSERT INTO {table} VALUES (1, 1, NULL, NULL, NULL),
        (NULL, 3, '5 minutes', TIMESTAMP '1969-12-31', NULL)""")
    return table


CHANGES = {
    "rows between two sessions": "INSERT INTO {table} SELECT k, 5, gap, timestampadd(MINUTE, 5, ts), n FROM {table} "
    "WHERE v IN (2, 4)",
    "a row at the very end of a session": "INSERT INTO {table} SELECT k, 3, '1 minute', max(ts) + INTERVAL 5 MINUTES, "
    "max(n) FROM {table} GROUP BY k",
    "the rows that hold sessions together": "DELETE FROM {table} WHERE v = 5",
    "without times, and with times again": "UPDATE {table} SET ts = CASE WHEN ts IS NULL THEN TIMESTAMP "
    "'2024-10-27 01:00:00' END, n = NULL WHERE v = 1",
    "other keys": "UPDATE {table} SET k = k + 1, gap = '3 minutes' WHERE v = 6 OR k IS NULL",
    "nothing": "DELETE FROM {table} WHERE true",
}


TOGETHER = (2, 5, len(CHANGES))
"""After which changes stream tables follow: `make test-long` has them follow each."""


def test_sessions_follow_changes(hr: Headrace, ns: str, table: str) -> None:
    played = list(VIEWS.values()) if LONG else [VIEWS[name] for name in SOME]
    names = [f"{ns}.v{i}" for i in range(len(played))]
    for name, query in zip(names, played, strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    assert all(hr.spark.table(f"lake.{name}").count() for name in names)
    for number, (said, change) in enumerate(CHANGES.items(), 1):
        hr.spark.sql(change.format(table=table))
        if LONG or number in TOGETHER:
            results = hr.refresh(names)
            assert [r for r in results if r.mode is Mode.FULL] == []
            require_equal(hr, names, said, due=number > 2)


@pytest.mark.long
def test_a_stream_table_of_sessions_can_be_filtered_and_grouped_by(hr: Headrace, ns: str, table: str) -> None:
    grouped = f"SELECT k, session_window(ts, '5 minutes') AS w, count(*) AS n FROM {ns}.t GROUP BY k, w"
    hr.create_stream_table(f"{ns}.sessions", grouped, refresh_mode="DIFFERENTIAL")
    names = [f"{ns}.sessions", f"{ns}.late", f"{ns}.spans"]
    late = f"SELECT k, n FROM {names[0]} WHERE w.start > TIMESTAMP '2024-10-26 22:12:00'"
    hr.create_stream_table(names[1], late, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(names[2], f"SELECT w, sum(n) AS n FROM {names[0]} GROUP BY w", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(CHANGES["rows between two sessions"].format(table=table))
    hr.refresh(names)
    assert [v for v in hr.verify(names) if not v.ok] == []


FULL = {
    "outside of GROUP BY": "SELECT k, session_window(ts, '5 minutes') AS w FROM {t}",
    "distinct": "SELECT DISTINCT session_window(ts, '5 minutes') AS w FROM {t}",
    "by a field": "SELECT count(*) AS n FROM {t} GROUP BY session_window(ts, '5 minutes').start",
    "no length": "SELECT session_window(ts, '0 minutes') AS w FROM {t} GROUP BY 1",
    "less than that": "SELECT session_window(ts, '-5 minutes') AS w FROM {t} GROUP BY 1",
    "no interval": "SELECT session_window(ts, '5 moons') AS w FROM {t} GROUP BY 1",
    "no gap": "SELECT session_window(ts, NULL) AS w FROM {t} GROUP BY 1",
    "two counts of distinct values": "SELECT session_window(ts, '5 minutes') AS w, count(DISTINCT k) AS a, "
    "count(DISTINCT v) AS b FROM {t} GROUP BY 1",
    "filtered": "SELECT session_window(ts, '5 minutes') AS w FROM {t} GROUP BY 1 HAVING session_window.start > '2024'",
    "grouped again": "SELECT w, count(*) AS n FROM (SELECT k, session_window(ts, '5 minutes') AS w FROM {t} "
    "GROUP BY k, w) GROUP BY w",
    "compared": "SELECT w FROM (SELECT k, session_window(ts, '5 minutes') AS w FROM {t} GROUP BY k, w) "
    "INTERSECT SELECT window(ts, '5 minutes') AS w FROM {t}",
}


def test_what_spark_merges_otherwise_stays_full(hr: Headrace, ns: str, table: str) -> None:
    for said, query in FULL.items():
        for found in (hr.validate(query.format(t=f"{ns}.t")), hr.explain_query(query.format(t=f"{ns}.t"))):
            assert found.mode is Mode.FULL, said
            assert [(r.construct, bool(r.hint)) for r in found.refusals] == [("session_window()", True)], said
        if LONG or said in ("distinct", "grouped again"):
            hr.create_stream_table(f"{ns}.v", query.format(t=f"{ns}.t"))
            hr.spark.sql(CHANGES["rows between two sessions"].format(table=table))
            assert hr.refresh(f"{ns}.v").mode is Mode.FULL
            hr.drop_stream_table(f"{ns}.v")
