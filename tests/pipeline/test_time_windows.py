"""`window()` and `window_time()` on Spark: maintained by the change, equal to the query."""

from __future__ import annotations

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.errors import UserError
from headrace.results.refresh_results import Mode

SLIDING = "window(ts, '1 hour 30 minutes', '25 minutes', '10 minutes')"
VIEWS = {
    "tumbling": "SELECT window.start AS s, window.end AS e, k, count(*) AS n, sum(v) AS total FROM {t} "
    "GROUP BY window(ts, '10 minutes'), k",
    "kept as a struct": f"SELECT {SLIDING} AS w, max(v) AS m FROM {{t}} GROUP BY w",
    "by a field": "SELECT date_trunc('DAY', window(ts, '5 minutes').start) AS d, count(DISTINCT k) AS n FROM {t} "
    "WHERE v > 0 GROUP BY 1 HAVING count(*) > 0",
    "rows": "SELECT *, window(n, '1 day', '12 hours').end AS e FROM {t}",
    "distinct": "SELECT DISTINCT window(CAST(ts AS DATE), '2 days') FROM {t}",
    "joined, last moment": "SELECT a.k, a.late, b.m FROM "
    f"(SELECT k, window_time(w) AS late, w FROM (SELECT k, {SLIDING} AS w FROM {{t}})) a LEFT JOIN "
    f"(SELECT {SLIDING} AS w, max(v) AS m FROM {{t}} GROUP BY ALL) b ON a.w = b.w AND b.m > 1",
    "ranked": "SELECT k, window(ts, '1 hour') AS w, rank() OVER (PARTITION BY window(ts, '1 hour') ORDER BY v) AS r "
    "FROM {t}",
    "latest": "SELECT w.start, k, n FROM (SELECT window(ts, '1 hour') AS w, k, count(*) AS n FROM {t} GROUP BY ALL) "
    "ORDER BY n DESC, w.start, k LIMIT 3",
}


FURTHER = ("distinct", "by a field", "latest")
"""Left to `make test-long`."""


def test_spans_follow_changes(hr: Headrace, ns: str) -> None:
    table = f"lake.{ns}.t"
    hr.spark.sql(f"CREATE TABLE {table} (k INT, v INT, ts TIMESTAMP, n TIMESTAMP_NTZ) USING iceberg")
    hr.spark.sql(
        f"""INSERT INTO {table} SELECT id % 3, id % 7, timestampadd(MINUTE, id * 13, TIMESTAMP '2024-10-26 22:05:00'),
        timestampadd(HOUR, id * 5, TIMESTAMP_NTZ '1969-12-30 00:30:00') FROM range(40)"""
    )
    hr.spark.sql(f"INSERT INTO {table} VALUES (1, 1, NULL, NULL), (NULL, NULL, TIMESTAMP '1969-12-31 23:59:59', NULL)")
    played = [query for name, query in VIEWS.items() if LONG or name not in FURTHER]
    names = [f"{ns}.v{i}" for i in range(len(played))]
    for name, query in zip(names, played, strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    changes = (
        f"""INSERT INTO {table} VALUES
            (2, 9, TIMESTAMP '2024-10-27 01:00:00', NULL), (1, 3, NULL, TIMESTAMP_NTZ '2000-01-01')""",
        f"UPDATE {table} SET ts = timestampadd(MINUTE, 40, ts), n = NULL WHERE v = 3",
        f"DELETE FROM {table} WHERE k = 1 OR ts IS NULL",
    )
    for number, change in enumerate(changes, 1):
        hr.spark.sql(change)
        if number == 1 and not LONG:
            continue  # the first two together
        results = hr.refresh(names)
        assert [r for r in results if r.mode is Mode.FULL] == []
        require_equal(hr, names, change, due=number == len(changes))
    assert all(hr.spark.table(f"lake.{name}").count() for name in names)


@pytest.mark.parametrize("span", ["0 minutes", "-5 minutes"])
def test_a_span_without_length_is_refused(hr: Headrace, ns: str, span: str) -> None:
    hr.spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{ns}.t (ts TIMESTAMP) USING iceberg")
    query = f"SELECT window(ts, '{span}') AS w, count(*) AS n FROM {ns}.t GROUP BY w"
    for attempt in (hr.validate, lambda text: hr.create_stream_table(f"{ns}.v", text)):
        with pytest.raises(UserError, match="window") as caught:
            attempt(query)
        assert caught.value.place is not None
        assert caught.value.code == "TYPE_MISMATCH"
        assert "Give it a value within these bounds." in str(caught.value)


def test_what_is_no_span_of_a_time_stays_full(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, ts TIMESTAMP, window INT) USING iceberg")
    for query in (
        "SELECT window(window(ts, '1 hour'), '2 hours') AS w, count(*) AS n FROM {t} GROUP BY 1",
        "SELECT k FROM {t} WHERE window(ts, '1 hour').start > TIMESTAMP '2000-01-01'",
        "SELECT window(ts, '1 hour') AS w, count(*) AS n FROM {t} GROUP BY ROLLUP(window(ts, '1 hour'))",
        "SELECT window(ts, '1 hour') AS w, window FROM {t}",
    ):
        found = hr.validate(query.format(t=f"{ns}.t"))
        assert found.mode == "FULL", query
        assert {r.construct for r in found.refusals} <= {"window()"}, query
