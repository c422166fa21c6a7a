"""What is read returns what was written: the query and its algebra give the same rows on DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
import sqlglot
from fast.sql.corpus import QUERIES, TABLES

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.reader import read


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, (columns, rows) in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"INSERT INTO {name} VALUES {rows}")
        yield connection


def bind(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Scan)
    return leaf.source.table


def rows(duck: duckdb.DuckDBPyConnection, sql: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(repr, row)) for row in duck.execute(sql).fetchall())


@pytest.mark.parametrize("query", QUERIES)
def test_the_algebra_returns_what_the_query_does(duck: duckdb.DuckDBPyConnection, query: str) -> None:
    def schema(name: TableName) -> tuple[Column, ...]:
        return tuple(Column(row[0], row[1]) for row in duck.execute(f"DESCRIBE {name.table}").fetchall())

    def describe(relation: Relation) -> tuple[Column, ...]:
        described = duck.execute(f"DESCRIBE {lower(relation, bind, 'duckdb')}").fetchall()
        return tuple(Column(row[0], row[1]) for row in described)

    found = read(query, resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]), schema=schema)
    assert found.tree is not None, found.refusals
    tree = with_types(found.tree, describe)
    original = sqlglot.transpile(query, read="spark", write="duckdb")[0]
    assert rows(duck, lower(tree, bind, "duckdb")) == rows(duck, original)
