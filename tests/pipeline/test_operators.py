"""Operators that read what is stored, through the whole pipeline: each refreshed by the change, and verified."""

from __future__ import annotations

from headrace.api import Headrace
from headrace.engine.results import Mode

VIEWS = {
    "partition shown": "SELECT k, v, rank() OVER w r, sum(x) OVER w s FROM {t} WINDOW w AS (PARTITION BY k ORDER BY v)",
    "partition not shown": "SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM {t}",
    "no partition": "SELECT v, lag(v) OVER (ORDER BY v, k) AS p, k FROM {t}",
    "first rows": "SELECT k, sum(v) AS s FROM {t} GROUP BY k ORDER BY sum(v) DESC, k LIMIT 2",
    "copies left": "SELECT k FROM {t} EXCEPT ALL SELECT v FROM {t}",
    "sets": "SELECT k, v, count(*) AS n, grouping(v) AS g, count(DISTINCT x) AS d FROM {t} GROUP BY ROLLUP(k, v)",
    "array": "SELECT k, sort_array(collect_list(v)) AS l FROM {t} GROUP BY k",
    "generated": "SELECT k, e.p FROM {t} LATERAL VIEW OUTER explode(sequence(1, v)) e AS p WHERE v < 4",
}


def test_each_follows_a_change(hr: Headrace, ns: str) -> None:
    table = f"lake.{ns}.t"
    hr.spark.sql(f"CREATE TABLE {table} (k INT, v INT, x DOUBLE) USING iceberg")
    hr.spark.sql(f"INSERT INTO {table} VALUES (1, 1, 0.1), (1, 2, 0.2), (2, 2, -0.0D), (3, NULL, 1.5), (2, 3, 7)")
    names = [f"{ns}.v{i}" for i in range(len(VIEWS))]
    for name, query in zip(names, VIEWS.values(), strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    for change in (
        f"INSERT INTO {table} VALUES (1, 3, 0.3), (4, 1, 2), (NULL, 2, 1), (1, 3, 0.3)",
        f"DELETE FROM {table} WHERE k = 2",
        f"UPDATE {table} SET k = 4, v = v + 1 WHERE k = 1 AND v < 3",
    ):
        hr.spark.sql(change)
        results = hr.refresh(names)
        assert [r for r in results if r.mode is Mode.FULL] == []
        assert [v for v in hr.verify(names) if not v.ok] == [], change
