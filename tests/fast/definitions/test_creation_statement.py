"""Statements that make stream tables again: read by our own reader, they say what the catalog has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pytest

from headrace.catalog import RefreshMode, Status, StreamTable
from headrace.definitions.creation_statement import creation_statement
from headrace.definitions.details import Details, to_json
from headrace.names import TableName
from headrace.semantics import SET_OPERATIONS_IN_ORDER, Semantics
from headrace.sql.reader.syntax.statement_cursor import string_literal, string_value
from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import CreateStreamTable, SparkStatement, Statement

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CATALOGS = frozenset({"lake", "staging", "other"})


def table(
    name: tuple[str, ...] = ("shop", "revenue"),
    query: str = "SELECT 1",
    schedule: str | None = None,
    mode: RefreshMode = RefreshMode.AUTO,
    status: Status = Status.ACTIVE,
    options: Mapping[str, str] | None = None,
    namespace: tuple[str, ...] = (),
    semantics: Semantics | None = None,
) -> StreamTable:
    details = to_json(Details(query, namespace, semantics or Semantics(), (), (), {}, (), None))
    own = TableName("lake", name[:-1], name[-1])
    return StreamTable(
        1, own, query, (), mode, schedule, details, None, None, 1, status, None, None, NOW, options or {}
    )


def script(of: StreamTable) -> tuple[Statement, ...]:
    """What is read from two of its statements, one after the other: the first must end where it ends."""
    text = creation_statement(of, CATALOGS, Semantics())
    read = parse_script(f"{text}\n{text}")
    assert len(read) % 2 == 0
    return read[: len(read) // 2]


QUERIES = [
    "SELECT 1",
    "\n    SELECT a, ';' AS `b;c`  -- why\n      FROM shop.orders /* all; of them */\n  ",
    "-- first\nSELECT a FROM shop.orders -- last",
    "/* a */ SELECT 'it''s', \"\\\"\", [1][0] FROM shop.orders /* z; */",
    "SELECT 1 -- carried on \\",
    "\tWITH x AS (SELECT 1 AS a)\nSELECT * FROM x",
]


@pytest.mark.parametrize("query", [query.rstrip() for query in QUERIES])
def test_queries_stay_as_they_were_written(query: str) -> None:
    (create,) = script(table(query=query))
    assert isinstance(create, CreateStreamTable)
    assert create.query.sql == query
    assert (create.schedule, create.refresh_mode, create.properties, create.initialize) == (None, "AUTO", {}, True)


def test_everything_that_is_set_is_said() -> None:
    options = {"pool": "it's \\ 'fine'", "timeout": "10 minutes", "refresh_group": "a\nb%_\\%", "fuse_factor": "2.5"}
    mode = RefreshMode.DIFFERENTIAL
    (create,) = script(table(schedule="0 6 * * * Europe/Berlin", mode=mode, status=Status.NEW, options=options))
    assert isinstance(create, CreateStreamTable)
    assert (create.schedule, create.refresh_mode) == ("0 6 * * * Europe/Berlin", "DIFFERENTIAL")
    assert (create.properties, create.initialize) == (options, False)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (("shop", "revenue"), ("shop", "revenue")),
        (("if", "select"), ("if", "select")),
        (("a b", "x`y", "1.5"), ("a b", "x`y", "1.5")),
        (("1", "2"), ("1", "2")),
        (("größe", "日本"), ("größe", "日本")),
        (("other", "t"), ("lake", "other", "t")),
        (("other", "a", "t"), ("lake", "other", "a", "t")),
        (("lake", "a", "t"), ("lake", "lake", "a", "t")),
    ],
)
def test_names_are_quoted_and_qualified_where_they_must_be(name: tuple[str, ...], written: tuple[str, ...]) -> None:
    (create,) = script(table(name))
    assert isinstance(create, CreateStreamTable)
    assert create.name == written


def test_what_the_session_decides_stands_around_it() -> None:
    names = "SELECT o.a FROM orders o, shop.items"
    use, create, back = script(table(query=names, namespace=("s h", "x")))
    assert isinstance(create, CreateStreamTable)
    assert (use.sql, back.sql) == ("USE lake.`s h`.x", "USE lake")
    (create,) = script(table(query="WITH o AS (TABLE a.b) TABLE o", namespace=("shop",)))
    assert isinstance(create, CreateStreamTable)
    semantics = Semantics("Europe/Vienna", ansi=False)
    read = script(table(semantics=semantics))
    assert [s.sql for s in read if isinstance(s, SparkStatement)] == [
        "SET spark.sql.session.timeZone = Europe/Vienna",
        "SET spark.sql.ansi.enabled = false",
        "RESET spark.sql.session.timeZone",
        "RESET spark.sql.ansi.enabled",
    ]
    of_option = table(semantics=Semantics(unusual=((SET_OPERATIONS_IN_ORDER, "true"),)))
    assert [s.sql for s in script(of_option) if isinstance(s, SparkStatement)] == [
        f"SET {SET_OPERATIONS_IN_ORDER} = true",
        f"RESET {SET_OPERATIONS_IN_ORDER}",
    ]
    text = creation_statement(table(semantics=semantics), CATALOGS, semantics)
    assert text == "CREATE STREAM TABLE shop.revenue\n  REFRESH MODE AUTO\n  AS\nSELECT 1;"


def test_literals_are_read_as_what_they_stand_for() -> None:
    for text in ("", "a", "'", "''", "\\", "\\'", "\\n", "\\%", 'x"y', "\n", "\\u0041"):
        assert string_value(string_literal(text)) == text
