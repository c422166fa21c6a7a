"""DuckDB as the engine: no JVM, a millisecond a statement."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

import duckdb
import sqlglot

from headrace.algebra.schema import Column
from headrace.names import quote
from kit.case import Row
from kit.dialect import for_duckdb

_TYPES = {
    "hugeint": "bigint",
    "uinteger": "bigint",
    "ubigint": "bigint",
    "varchar": "string",
    "integer": "int",
    "decimal(38,2)": "decimal(18,2)",
}
"""DuckDB sums wider and counts without a sign; these are the types that Spark gives, as far as tests use them."""


@lru_cache(maxsize=20000)
def translated(sql: str) -> str:
    """Spark SQL in DuckDB's dialect, which knows no limit of recursion."""
    sql = re.sub(r"MAX RECURSION LEVEL \d+", "", sql)
    tree = for_duckdb(sqlglot.parse_one(sql, read="spark"))
    return tree.sql("duckdb", copy=False, unsupported_level=sqlglot.ErrorLevel.IGNORE)


class DuckExecutor:
    """An in-memory database; see `Executor`."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        # what Spark calls raise_error
        self.connection.execute("CREATE MACRO raise_error(message) AS error(message)")
        # what sqlglot makes of try_multiply; no test comes near the overflow that would be NULL
        copies = "list_sum(list_transform(range(abs(n)::BIGINT), lambda _: x))"
        self.connection.execute(f"CREATE MACRO safe_multiply(x, n) AS sign(n)::INT * {copies}")
        self.connection.execute("CREATE MACRO try_sum(x) AS sum(x); CREATE MACRO try_avg(x) AS avg(x)")
        # Spark orders what it aggregates by a constant, too
        self.connection.execute("SET order_by_non_integer_literal = true")
        # tables have a handful of rows: planning is all it spends its time on; but tables that stand side by side in
        # FROM, with their joins in WHERE, would be multiplied
        passes = "SELECT string_agg(name, ',') FROM duckdb_optimizers() WHERE name <> 'filter_pushdown'"
        ((disabled,),) = self.connection.execute(passes).fetchall()
        self.connection.execute(f"SET threads = 1; SET disabled_optimizers = '{disabled}'")

    def table(self, name: str) -> str:
        return quote(name)

    def define(self, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        types = ", ".join(f"{quote(c.name)} {c.type}" for c in columns)
        self.connection.execute(_create(name, types))
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            self.connection.execute(f'INSERT INTO "{name}" VALUES {values}')

    def keep(self, name: str, sql: str) -> int:
        ((count,),) = self.connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS {translated(sql)}').fetchall()
        return int(count)

    def rows(self, sql: str) -> list[Row]:
        return self.connection.execute(translated(sql)).fetchall()

    def describe(self, sql: str) -> tuple[Column, ...]:
        found = self.connection.execute(f"DESCRIBE {translated(sql)}").fetchall()
        return tuple(Column(row[0], _TYPES.get(row[1].lower(), row[1].lower())) for row in found)


@lru_cache(maxsize=2000)
def _create(name: str, types: str) -> str:
    return sqlglot.transpile(f"CREATE OR REPLACE TABLE {quote(name)} ({types})", read="spark", write="duckdb")[0]


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return str(value)
        case float():
            return f"'{value}'::DOUBLE"
        case datetime.date():
            return f"DATE '{value}'"
    text = str(value).replace("'", "''")
    return f"'{text}'"
