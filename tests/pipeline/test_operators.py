"""Operators that read what is stored, through the whole pipeline: each refreshed by the change, and verified."""

from __future__ import annotations

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode

VIEWS = {
    "partition shown": "SELECT k, v, rank() OVER w r, sum(x) OVER w s FROM {t} WINDOW w AS (PARTITION BY k ORDER BY v)",
    "partition not shown": "SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM {t}",
    "no partition": "SELECT v, lag(v) OVER (ORDER BY v, k) AS p, k FROM {t}",
    "first rows": "SELECT k, sum(v) AS s FROM {t} GROUP BY k ORDER BY sum(v) DESC, k LIMIT 2",
    "by an alias": "SELECT v AS k, k + 1 AS d FROM {t} WHERE v > 0 ORDER BY k + 1, k, d LIMIT 2",
    "by what is not shown": "SELECT o.k, (SELECT k FROM {t} i WHERE i.v <= o.k ORDER BY i.v DESC, k LIMIT 1) AS last "
    "FROM {t} o",
    "copies left": "SELECT k FROM {t} EXCEPT ALL SELECT v FROM {t}",
    "sets": "SELECT k, v, count(*) AS n, grouping(v) AS g, count(DISTINCT x) AS d FROM {t} GROUP BY ROLLUP(k, v)",
    "array": "SELECT k, sort_array(collect_list(v)) AS l FROM {t} GROUP BY k",
    "generated": "SELECT k, e.p FROM {t} LATERAL VIEW OUTER explode(sequence(1, v)) e AS p WHERE v < 4",
    "generated in FROM": "SELECT t.k, e.p, q.y FROM {t} t, LATERAL explode(sequence(1, t.v)) AS e(p) "
    "JOIN LATERAL posexplode(array_repeat(e.p, t.k - 1)) AS q(y, z) ON q.y < e.p",
    "map": "SELECT a.k, b.m, count(*) OVER (PARTITION BY a.k) AS n FROM {t} a LEFT JOIN "
    "(SELECT k, CASE WHEN v > 1 THEN map(CAST(x AS STRING), v || '', 'w', NULL) END m FROM {t}) b ON b.k = a.v",
    "one variant": "SELECT k, variant_get(last, '$.v', 'int') AS v "
    "FROM {t} CROSS JOIN (SELECT max_by(parse_json(to_json(struct(v))), v) AS last FROM {t})",
    "one variant of one text": "SELECT k, variant_get(last, '$.v', 'int') AS v "
    "FROM {t} CROSS JOIN (SELECT parse_json(max(to_json(struct(v)))) AS last FROM {t})",
    "fields": "SELECT s.* EXCEPT (b), q.s.b AS b "
    "FROM (SELECT named_struct('v', v, 'b', x, 'in', struct(k)) AS s FROM {t}) q",
}


FURTHER = ("partition not shown", "no partition", "by an alias", "by what is not shown", "generated")
"""Left to `make test-long`: each has another beside it that is stored and followed alike, and histories on DuckDB."""


def test_each_follows_a_change(hr: Headrace, ns: str) -> None:
    table = f"lake.{ns}.t"
    hr.spark.sql(f"CREATE TABLE {table} (k INT, v INT, x DOUBLE) USING iceberg")
    hr.spark.sql(f"INSERT INTO {table} VALUES (1, 1, 0.1), (1, 2, 0.2), (2, 2, -0.0D), (3, NULL, 1.5), (2, 3, 7)")
    played = [query for name, query in VIEWS.items() if LONG or name not in FURTHER]
    names = [f"{ns}.v{i}" for i in range(len(played))]
    for name, query in zip(names, played, strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    changes = (
        f"INSERT INTO {table} VALUES (1, 3, 0.3), (4, 1, 2), (NULL, 2, 1), (1, 3, 0.3)",
        f"DELETE FROM {table} WHERE k = 2",
        f"UPDATE {table} SET k = 4, v = v + 1 WHERE k = 1 AND v < 3",
    )
    for number, change in enumerate(changes, 1):
        hr.spark.sql(change)
        if LONG or number > 1:  # the first two together
            results = hr.refresh(names)
            assert [r for r in results if r.mode is Mode.FULL] == []
            require_equal(hr, names, change, due=number == len(changes))


NOT_KEPT = {
    "shown": "SELECT k, s COLLATE UTF8_LCASE AS s FROM {t}",
    "distinct": "SELECT DISTINCT s COLLATE UTF8_LCASE AS s FROM {t}",
    "grouped by": "SELECT count(*) AS n FROM {t} GROUP BY s COLLATE UTF8_LCASE",
    "variant": "SELECT k, parse_json(to_json(struct(s))) AS j FROM {t}",
    "map of floats": "SELECT k, map('x', CASE k WHEN 2 THEN 0.0D WHEN 3 THEN -0.0D END, s || k, NULL) AS m FROM {t} "
    "WHERE s IS NOT NULL",
}


@pytest.mark.long
def test_what_a_table_does_not_keep_is_computed_anew_and_compared(hr: Headrace, ns: str) -> None:
    table = f"lake.{ns}.t"
    rows = "(1, 'a'), (2, 'A'), (3, 'b'), (4, NULL)"
    hr.spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM VALUES {rows} AS t(k, s)")
    names = [f"{ns}.v{i}" for i in range(len(NOT_KEPT))]
    for name, query in zip(names, NOT_KEPT.values(), strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"))
    hr.spark.sql(f"DELETE FROM {table} WHERE k = 1")
    hr.spark.sql(f"INSERT INTO {table} VALUES (5, 'B')")
    assert {result.mode for result in hr.refresh(names)} == {Mode.FULL}
    assert [v for v in hr.verify(names) if not v.ok] == []


_EQUAL = "(SELECT k, v, s COLLATE UTF8_LCASE AS c FROM {t})"
OF_EQUAL_TEXTS = {
    "joined": "SELECT t.k, m COLLATE UTF8_BINARY AS m "
    f"FROM {{t}} JOIN (SELECT v, max(c) AS m FROM {_EQUAL} GROUP BY v) AS g ON g.v = t.v",
    "window": f"SELECT k, hex(min(c) OVER (PARTITION BY v)) AS h FROM {_EQUAL}",
    "subquery": f"SELECT k, (SELECT max(c) FROM {_EQUAL} AS e WHERE e.v = t.v) COLLATE UTF8_BINARY AS m FROM {{t}}",
    "distinct": "SELECT x, count(*) AS n "
    f"FROM (SELECT DISTINCT v, hex(c) AS x FROM (SELECT DISTINCT v, c FROM {_EQUAL})) GROUP BY x",
}
COMPARED_ONLY = {
    "counted": f"SELECT v, count(DISTINCT c) AS n FROM {_EQUAL} GROUP BY v",
    "groups": f"SELECT count(*) AS n FROM (SELECT c FROM {_EQUAL} GROUP BY c)",
    "greatest": f"SELECT e.k FROM {_EQUAL} AS e JOIN (SELECT v, max(c) AS m FROM {_EQUAL} GROUP BY v) AS g "
    "ON g.v = e.v AND g.m = e.c",
    "window": f"SELECT k, max(c) OVER (PARTITION BY v) = c AS greatest FROM {_EQUAL}",
}


def test_which_of_equal_texts_comes_out_does_not_show(hr: Headrace, ns: str) -> None:
    table = f"lake.{ns}.t"
    rows = "(1, 1, 'a'), (2, 1, 'b'), (3, 2, 'A'), (4, 2, NULL)"
    hr.spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM VALUES {rows} AS t(k, v, s)")
    for query in OF_EQUAL_TEXTS.values():
        assert hr.validate(query.format(t=f"{ns}.t")).reason is FullReason.NOT_DETERMINISTIC
    names = [f"{ns}.v{i}" for i in range(len(COMPARED_ONLY))]
    for name, query in zip(names, COMPARED_ONLY.values(), strict=True):
        hr.create_stream_table(name, query.format(t=f"{ns}.t"), refresh_mode="DIFFERENTIAL")
    for change in (
        f"INSERT INTO {table} VALUES (5, 1, 'B'), (6, 1, 'A'), (7, 2, 'a')",
        f"DELETE FROM {table} WHERE k IN (1, 2, 3)",
    ):
        hr.spark.sql(change)
        hr.refresh(names)
        assert [v for v in hr.verify(names) if not v.ok] == []


def test_what_cannot_be_compared_is_followed_as_a_whole(hr: Headrace, ns: str) -> None:
    table, upper, lower = f"lake.{ns}.t", f"{ns}.parsed", f"{ns}.read"
    hr.spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM VALUES (1, 'a'), (2, 'b'), (2, NULL) AS t(k, s)")
    hr.create_stream_table(upper, f"SELECT k, parse_json(to_json(struct(s))) AS j FROM {ns}.t")
    read = f"SELECT variant_get(j, '$.s', 'string') AS s, count(*) AS n FROM {upper} GROUP BY 1"
    hr.create_stream_table(lower, read, refresh_mode="DIFFERENTIAL")
    for change in (f"DELETE FROM {table} WHERE k = 1", f"INSERT INTO {table} VALUES (3, 'b'), (3, 'c')"):
        hr.spark.sql(change)
        assert [result.mode for result in hr.refresh([upper, lower])] == [Mode.FULL, Mode.DIFFERENTIAL]
    assert [v for v in hr.verify([upper, lower]) if not v.ok] == []
