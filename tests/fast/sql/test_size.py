"""Queries of unreasonable size: read in bounded time, or refused in plain words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fast.sql.reading_cases import resolve, schema

from headrace.delta.derive import delta_program
from headrace.errors import Unsupported
from headrace.sql.reader import Reading, read
from headrace.sql.references import references


def reading(query: str) -> Reading:
    return read(query, resolve=resolve, schema=schema)


def chain(kind: str, tables: int) -> str:
    joins = (f"{kind} t AS t{i} ON t{i}.a = t{i - 1}.a" for i in range(1, tables))
    return f"SELECT t0.a FROM t AS t0 {' '.join(joins)}"


def ctes(number: int, body: str) -> str:
    names = ["t", *(f"c{i}" for i in range(number))]
    defined = (f"{new} AS ({body.format(old)})" for old, new in pairwise(names))
    return f"WITH {', '.join(defined)} SELECT a FROM {names[-1]}"


READ = {
    "joins": chain("JOIN", 60),
    "unions": " UNION ALL ".join(f"SELECT a, {i} AS b FROM t" for i in range(600)),
    "values": f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(20_000)))})",
    "conditions": f"SELECT a FROM t WHERE {' OR '.join(f'a = {i} AND b <> {i}' for i in range(3_000))}",
    "brackets": f"SELECT {'(' * 150}a{')' * 150} AS x FROM t",
    "nested": f"SELECT a FROM {'(SELECT a FROM ' * 50}t{')' * 50}",
    "comment": f"SELECT a /* {'x' * 2_000_000} */ FROM t",
}


@pytest.mark.parametrize("name", READ)
def test_what_is_long_is_read(name: str) -> None:
    found = reading(READ[name])
    assert found.refusals == ()
    assert found.tree is not None


def test_a_join_of_many_tables_is_followed() -> None:
    found = reading(chain("JOIN", 30))
    assert found.tree is not None
    program = delta_program(found.tree, frozenset(found.sources))
    assert program is not None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ctes(25, "SELECT x.a FROM {0} AS x JOIN {0} AS y ON x.a = y.a"), "more than 2000 operators"),
        (ctes(90, "SELECT DISTINCT a + 1 AS a FROM {0}"), "one above the other"),
        (ctes(900, "SELECT a FROM {0}"), "nested too deep"),
        (" UNION ALL ".join(f"SELECT a, {i} AS b FROM t" for i in range(3_000)), "set operations"),
    ],
    ids=("doubled", "stacked", "chained", "many"),
)
def test_what_is_too_large_is_refused_and_refreshed_full(query: str, message: str) -> None:
    found = reading(query)
    assert found.tree is None
    assert [refusal.construct for refusal in found.refusals] == ["size of the query"]
    assert message in found.refusals[0].message
    assert found.refusals[0].place is not None
    assert {name.table for name in found.sources} == {"t"}


@pytest.mark.parametrize(
    "query",
    [f"SELECT {'(' * 5_000}a{')' * 5_000} AS x FROM t", f"SELECT a FROM {'(SELECT a FROM ' * 2_000}t{')' * 2_000}"],
    ids=("brackets", "queries"),
)
def test_what_is_too_deep_cannot_be_read(query: str) -> None:
    for look in (reading, references):
        with pytest.raises(Unsupported, match="nested too deep") as caught:
            look(query)
        assert caught.value.code == "QUERY_TOO_DEEP"
        assert caught.value.hint
