"""Orders that leave ties, on Spark: refined in FULL, DIFFERENTIAL and `verify` alike, told, and refused if wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

import pytest
from kit.long_tests import LONG
from kit.verified_rounds import require_equal

from headrace.api.facade import Headrace
from headrace.errors import Unsupported, UserError

QUERIES = {
    "dedup": """SELECT id, v, x, tag
        FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM {ns}.e) WHERE n = 1""",
    "named": """SELECT id, x, row_number() OVER w AS n, rank() OVER w AS r FROM {ns}.e
        WINDOW w AS (ORDER BY ts DESC NULLS LAST)""",
    "running": """SELECT id, sum(v) OVER (PARTITION BY id ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s
        FROM {ns}.e""",
    "first": "SELECT e.id, first_value(v) OVER (PARTITION BY tag ORDER BY ts) AS f, v FROM {ns}.e AS e",
    "top": "SELECT id, x, tag FROM {ns}.e ORDER BY ts DESC -- the latest\n LIMIT 3",
    "groups": "SELECT tag, avg(v) AS a, count(*) FROM {ns}.e GROUP BY tag ORDER BY count(*) DESC, a LIMIT 2 OFFSET 1",
    "any_rows": "SELECT id + 1, v FROM {ns}.e WHERE v > 1 LIMIT 4",
    "both": "SELECT id, v FROM {ns}.e UNION ALL SELECT v, id FROM {ns}.e ORDER BY 2 LIMIT 5",
    "latest": """SELECT k.id, (SELECT x FROM {ns}.e WHERE e.id = k.id LIMIT 1) AS any, l.*
        FROM {ns}.k AS k
        LEFT JOIN LATERAL (SELECT ts, x FROM {ns}.e WHERE e.id = k.id ORDER BY ts DESC LIMIT 1) AS l""",
    "chosen": """SELECT tag, max_by(v, ts) AS greatest, min_by(tag, x) FILTER (WHERE v < 4) AS least,
        any_value(v) AS any, first(x) AS f, last(tag, true) AS l, mode(v) AS m FROM {ns}.e
        GROUP BY tag, id % 2""",
    "summed": """SELECT e.id, e.v, g.s, g.a FROM {ns}.e JOIN (SELECT tag, sum(x * 0.1D) AS s, avg(x) AS a,
        var_pop(v) AS p, stddev(x) FILTER (WHERE v < 4) AS d FROM {ns}.e GROUP BY tag) AS g ON g.tag = e.tag
        WHERE coalesce(g.d, 0) >= g.p OR e.x > (SELECT avg(i.x) FROM {ns}.e AS i WHERE i.id = e.id)""",
    "listed": """SELECT id, collect_list(v) AS vs, array_agg(x) AS xs, listagg(tag, ',') AS tags, first(v) AS v,
        array_join(collect_set(tag), '-') AS kinds FROM {ns}.e GROUP BY id ORDER BY v LIMIT 3""",
}
SOME = ("dedup", "top", "latest", "chosen", "summed", "listed")
ROUNDS = (
    """INSERT INTO lake.{ns}.e
        VALUES (1, 1, 9, 0.0, 'a'), (1, 1, 9, -0.0, 'a'), (2, 5, 1, NULL, 'b'), (4, NULL, 3, 1.5, NULL)""",
    "DELETE FROM lake.{ns}.e WHERE v = 9 OR (id = 2 AND v = 2)",
    "UPDATE lake.{ns}.e SET ts = 5, x = -x WHERE id IN (1, 3)",
)


@pytest.fixture
def events(hr: Headrace, ns: str) -> str:
    hr.sql(f"CREATE TABLE lake.{ns}.e (id INT, ts INT, v INT, x DOUBLE, tag STRING) USING iceberg")
    hr.sql(f"CREATE TABLE lake.{ns}.k (id INT) USING iceberg")
    hr.sql(f"INSERT INTO lake.{ns}.k VALUES (1), (2), (3), (NULL)")
    rows = "(1, 1, 1, 0.0, 'a'), (1, 1, 2, -0.0, 'b'), (1, 1, 2, -0.0, 'b'), (2, 5, 2, NULL, 'b'), (2, 5, 3, 2.5, NULL)"
    hr.sql(f"INSERT INTO lake.{ns}.e VALUES {rows}, (3, 5, 3, double('NaN'), 'a'), (NULL, 1, NULL, 0.0, 'a')")
    return ns


def test_ties_are_ordered_alike_in_every_mode(hr: Headrace, events: str) -> None:
    ns = events
    played = QUERIES if LONG else {name: QUERIES[name] for name in SOME}
    for name, query in played.items():
        options = {"ties": "refine_floats"} if name == "summed" else {}
        hr.create_stream_table(f"{ns}.{name}", query.format(ns=ns), refresh_mode="DIFFERENTIAL", options=options)
    names = [f"{ns}.{name}" for name in played]
    require_equal(hr, names, "nothing yet", due=False)
    for number, statement in enumerate(ROUNDS, 1):
        hr.sql(statement.format(ns=ns))
        if LONG or number > 1:  # the first two together
            assert {r.mode for r in hr.refresh(names)} <= {"DIFFERENTIAL", "NO_CHANGE"}
            require_equal(hr, names, statement, due=number == len(ROUNDS))
    kept = {name: _rows(hr, name) for name in names}
    hr.refresh(names, full=True)
    assert {name: _rows(hr, name) for name in names} == kept


def test_what_is_chosen_is_among_what_the_text_allows(hr: Headrace, ns: str) -> None:
    """With NULLs, NaN, both zeros and ties."""
    rows = """(1, 0.0, 1), (1, -0.0, 2), (1, NULL, 9), (2, double('NaN'), NULL), (2, double('NaN'), 4), (2, 5.0, 6),
        (3, NULL, 7), (3, NULL, NULL), (4, 1.0, NULL), (4, 1.0, 3), (4, 2.0, NULL), (4, 2.0, NULL), (NULL, -1.0, 5)"""
    frame = f"(SELECT * FROM VALUES {rows} AS t(k, y, a))"
    calls = ("max_by(a, y)", "min_by(a, y)", "any_value(a)", "first(a)", "last(a)", "mode(a)")
    hr.sql(f"CREATE TABLE lake.{ns}.t (k INT, y DOUBLE, a INT) USING iceberg")
    hr.sql(f"INSERT INTO lake.{ns}.t SELECT * FROM {frame}")
    groups: dict[object, list[tuple[float | None, int | None]]] = {}
    for k, y, a in hr.spark.table(f"lake.{ns}.t").collect():
        groups.setdefault(k, []).append((y, a))
    for number, call in enumerate(calls):
        name = f"{ns}.c{number}"
        hr.create_stream_table(name, f"SELECT k, {call} AS c FROM {ns}.t GROUP BY k", refresh_mode="DIFFERENTIAL")
        assert "ties" in dict(hr.explain(name).sections)
        found = {row["k"]: row["c"] for row in hr.spark.table(f"lake.{name}").collect()}
        assert found.keys() == groups.keys()
        for k, chosen in found.items():
            assert chosen in _allowed(call, groups[k]), (call, k, chosen)


Row = tuple[str | None, str | None, int]


def _listed(values: Iterable[str | None]) -> str:
    return ",".join(value for value in values if value is not None)


TOGETHER: dict[str, Callable[[Sequence[Row]], str]] = {
    "to_json(map_from_arrays(collect_list(k), array_agg(coalesce(v, '-'))))": lambda rows: json.dumps(
        {k: v or "-" for k, v, _ in rows}, separators=(",", ":")
    ),
    "concat_ws('/', array_join(collect_list(k), ','), array_join(collect_list(v) FILTER (WHERE k <> 'a'), ','))": (
        lambda rows: f"{_listed(k for k, *_ in rows)}/{_listed(v for k, v, _ in rows if k != 'a')}"
    ),
    "concat(first(k), '/', coalesce(first(v), '-'), '/', first(v, true))": lambda rows: (
        f"{rows[0][0]}/{rows[0][1] or '-'}/{next(v for _, v, _ in rows if v)}"
    ),
    "concat(any_value(k), '/', coalesce(last(v), '-'))": lambda rows: f"{rows[0][0]}/{rows[-1][1] or '-'}",
    "concat(max_by(k, ts), '/', coalesce(max_by(v, ts), '-'))": lambda rows: "/".join(
        value or "-" for value in max(reversed(rows), key=lambda row: row[2])[:2]
    ),
    "concat_ws('/', listagg(k, ','), array_join(collect_list(v), ','))": lambda rows: (
        f"{_listed(k for k, *_ in rows)}/{_listed(v for _, v, _ in rows)}"
    ),
}
"""Calls of one SELECT, and what they give together of the rows of a group in some order."""


def test_calls_of_one_select_take_the_same_rows(hr: Headrace, ns: str) -> None:
    hr.sql(f"CREATE TABLE lake.{ns}.t (id INT, k STRING, v STRING, ts INT) USING iceberg")
    hr.sql(f"INSERT INTO lake.{ns}.t VALUES (1, 'b', 'p', 1), (1, 'a', 'q', 1), (1, 'c', NULL, 1), (2, 'x', 'z', 1)")
    names = [f"{ns}.c{number}" for number in range(len(TOGETHER))]
    for name, calls in zip(names, TOGETHER, strict=True):
        query = f"SELECT id, {calls} AS c FROM {ns}.t GROUP BY id"
        hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    hr.sql(f"INSERT INTO lake.{ns}.t VALUES (2, 'y', 'r', 1), (3, 'm', 'n', 2), (3, 'o', 'l', 2), (3, 'p', 'k', 1)")
    hr.refresh(names)
    groups: dict[int, list[Row]] = {}
    for number, *row in hr.spark.table(f"lake.{ns}.t").collect():
        groups.setdefault(number, []).append((row[0], row[1], row[2]))
    for name, (calls, together) in zip(names, TOGETHER.items(), strict=True):
        found = {row["id"]: row["c"] for row in hr.spark.table(f"lake.{name}").collect()}
        assert found.keys() == groups.keys()
        for number, rows in groups.items():
            assert found[number] in {together(order) for order in permutations(rows)}, calls
        assert hr.verify(name).ok


def _allowed(call: str, rows: list[tuple[float | None, int | None]]) -> list[int | None]:
    """What a call may take: NaN is the greatest float, and rows whose order is NULL are passed over."""
    if call.startswith("mode"):
        values = [a for _, a in rows if a is not None]
        most = max(map(values.count, values), default=0)
        return [a for a in values if values.count(a) == most] or [None]
    if "y" not in call.partition("(")[2]:
        return [a for _, a in rows]
    ordered = [((y != y, 0.0 if y != y else y), a) for y, a in rows if y is not None]
    best = (max if call.startswith("max") else min)((y for y, _ in ordered), default=None)
    return [a for y, a in ordered if y == best] or [None]


def _rows(hr: Headrace, name: str) -> list[str]:
    """Rows of a table; Spark groups both zeros as one, so that a change may bring either."""
    return sorted(str(row).replace("-0.0", "0.0") for row in hr.spark.table(f"lake.{name}").collect())


def test_what_becomes_of_ties_is_told_and_can_be_altered(hr: Headrace, events: str) -> None:
    ns, query = events, QUERIES["dedup"].format(ns=events)
    found = hr.validate(query)
    assert found.mode == "DIFFERENTIAL"
    (line,) = [each for each in found.strategies if each.construct == "TIES"]
    assert (line.subject, line.how) == ("row_number() OVER", "ordered by v, CAST(x AS STRING), tag")
    with pytest.raises(UserError, match="INVALID_OPTION"):
        hr.create_stream_table(f"{ns}.t", query, options={"ties": "maybe"})
    with pytest.raises(Unsupported, match="does not tell all of them apart"):
        hr.create_stream_table(f"{ns}.t", query, refresh_mode="DIFFERENTIAL", options={"ties": "refuse"})
    hr.create_stream_table(f"{ns}.t", query, options={"ties": "refuse"})
    assert hr.explain(f"{ns}.t").mode == "FULL"
    hr.alter_stream_table(f"{ns}.t", options={"ties": "refine"})
    assert hr.refresh(f"{ns}.t").reason == "DEFINITION_CHANGED"
    hr.alter_stream_table(f"{ns}.t", refresh_mode="DIFFERENTIAL")
    hr.sql(f"INSERT INTO lake.{ns}.e VALUES (1, 1, 0, 7.0, 'a')")
    explained = hr.explain(f"{ns}.t")
    assert "row_number() OVER: ties are ordered by v, CAST(x AS STRING), tag" in dict(explained.sections)["ties"]
    assert "ORDER BY ts DESC, `v`, CAST(`x` AS STRING), `tag`" in dict(explained.sections)["FULL: SQL"]
    assert hr.refresh(f"{ns}.t").mode == "DIFFERENTIAL"
    assert hr.verify(f"{ns}.t").ok
