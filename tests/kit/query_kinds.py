"""Queries by kind over a few small tables, and what becomes of each: `fast/compiler/query_kinds.spec`.

A query ends with `=>` and its outcome: DIFFERENTIAL, or FULL with the reason's code and, in words, what it is because
of. `DIFFERENTIAL on Spark` says that DuckDB lacks a function, or means something else by it. Behind `|` stand the
columns as Spark describes them, where DuckDB describes others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import sqlglot

from headrace.algebra.schema import Column
from headrace.compiler.compile_tree import Describe
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.names import CLOCK, CLOCK_COLUMN, LAKE, TableName
from kit.duck import DuckExecutor

SPEC = Path(__file__).parents[1] / "fast" / "compiler" / "query_kinds.spec"


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*each.split(" ", 1)) for each in re.split(r", (?=\w+ )", text))


TABLES: dict[str, tuple[Column, ...]] = {
    "t": _columns("id int, a int, b int, c int, s string"),
    "u": _columns("id int, a int, k int, s string"),
    "v": _columns("a bigint, b bigint"),
    "emp": _columns("id int, dept string, salary int, boss int, hired date"),
    "f": _columns("id int, x double, y float"),
    "m": _columns("id int, price decimal(10,2), rate decimal(5,3), big decimal(38,10)"),
    "e": _columns("id int, day date, moment timestamp, local timestamp_ntz, text string"),
    "n": _columns(
        "id int, numbers array<int>, tags array<string>, pair struct<x:int,y:string>, props map<string,int>, doc string"
    ),
    "flags": _columns("id int, p boolean, q boolean"),
    "sales": _columns("product string, year int, quarter string, amount int"),
    "months": _columns("id int, jan int, feb int, mar int"),
}
_CLOCK = (Column(CLOCK_COLUMN, "timestamp"),)


@dataclass(frozen=True)
class Query:
    """A query of the spec.

    Args:
        kind: The heading that it stands below.
        text: Spark SQL.
        code: Why it is refreshed FULL; empty where it is followed.
        because: Of what, in words.
        played: Whether DuckDB follows it, too.
        columns: Its columns, as Spark describes them; None where DuckDB describes them so.
    """

    kind: str
    text: str
    code: str
    because: str
    played: bool
    columns: tuple[Column, ...] | None


@cache
def queries() -> tuple[Query, ...]:
    """The queries of the spec, in its order."""
    return tuple(_parsed(SPEC.read_text(encoding="utf-8")))


def _parsed(spec: str) -> Iterator[Query]:
    kind, text = "", ""
    for line in spec.splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif line.startswith("=> "):
            outcome, _, columns = line[3:].partition(" | ")
            word, _, because = outcome.partition(": ")
            code = word.removeprefix("FULL").strip() if word.startswith("FULL") else ""
            played = word == "DIFFERENTIAL"
            yield Query(kind, text, code, because, played, _columns(columns) if columns else None)
            text = ""
        elif line and not line.startswith("#"):
            text = f"{text}\n{line}".strip()


def names() -> dict[TableName, str]:
    """The tables' full names, and their own."""
    return {TableName(LAKE, ("shop",), table): table for table in TABLES} | {CLOCK: CLOCK.table}


def compiled(query: str, describe: Describe) -> CompiledView:
    """A query, compiled as for a stream table of which nothing is set otherwise."""
    return ViewCompiler(
        resolve=lambda parts: CLOCK if parts == CLOCK.parts else TableName(LAKE, ("shop",), parts[-1]),
        schema=lambda name: _CLOCK if name == CLOCK else TABLES[name.table],
        describe=describe,
        refine=True,
        moving=True,
    ).compile(query)


def in_session(describe: Describe) -> Describe:
    """A description of texts with full names, by a session that has the tables by their own."""

    def described(sql: str) -> tuple[Column, ...]:
        for full, own in names().items():
            sql = sql.replace(full.sql, own)
        return describe(sql)

    return described


@cache
def executor() -> DuckExecutor:
    """DuckDB with all tables, which are empty."""
    found = DuckExecutor()
    for table, columns in {**TABLES, CLOCK.table: _CLOCK}.items():
        found.define(table, columns, ())
    return found


def by_duckdb(query: Query) -> Describe:
    """How DuckDB describes a query and its parts, where the spec does not say it.

    A column of a part is taken for the query's own by its name; one that DuckDB cannot describe is a text, which then
    does not matter.
    """
    told = {each.name: each for each in query.columns or ()}

    def describe(sql: str) -> tuple[Column, ...]:
        if sql == query.text and query.columns is not None:
            return query.columns
        try:
            found = [Column(c.name, _spark_type(c.type)) for c in executor().describe(sql)]
        except (duckdb.Error, sqlglot.ParseError):
            if query.columns is None:
                raise
            found = [Column(name, "string") for name in sqlglot.parse_one(sql, read="spark").named_selects]
        return tuple(told.get(each.name, each) for each in found)

    return in_session(describe)


def _spark_type(duckdb_type: str) -> str:
    """A type in Spark's words: nested ones, and numbers within them."""
    if duckdb_type.endswith("[]"):
        return f"array<{_spark_type(duckdb_type[:-2])}>"
    if found := re.fullmatch(r"(struct|map)\((.*)\)", duckdb_type):
        parts = re.split(r", (?![^()]*\))", found[2])
        if found[1] == "map":
            return f"map<{','.join(map(_spark_type, parts))}>"
        fields = (part.split(" ", 1) for part in parts)
        return f"struct<{','.join(f'{name.strip(chr(34))}:{_spark_type(type_)}' for name, type_ in fields)}>"
    return _WORDS.get(duckdb_type, duckdb_type)


_WORDS = {
    "integer": "int",
    "varchar": "string",
    "hugeint": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}
