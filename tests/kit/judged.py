"""The queries that Spark judges Headrace's reader by, and a session that has their tables, all empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fast.sql.corpus import QUERIES, SCALARS, SPARK_QUERIES, SPARK_TABLES
from fast.sql.reading_cases import TABLES, VIEWS, cases
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.errors import HeadraceError, UserError
from headrace.names import CLOCK, TableName
from headrace.spark.errors import translated
from headrace.spark.type_texts import type_text
from headrace.sql.lower import lower
from headrace.sql.reader.context import ViewText
from headrace.sql.reader.reader import Reading, read
from kit import algebra_facts, nexmark, spark_facts, tpcds, tpch
from kit.case import Case
from kit.dispute import Dispute
from kit.fixture import parse
from kit.spark_plan import analysed

_ROOT = Path(__file__).parents[1]
_TPCH22 = _ROOT.parent / "src" / "headrace" / "demo" / "tpch22"
_ACID = _ROOT / "fast" / "differential" / "acid"

CATALOG = "judge"


@dataclass(frozen=True)
class Suite:
    """Queries over some tables.

    Args:
        name: Its own, and that of its tables' namespace.
        tables: Columns as Spark declares them, by table.
        queries: By name.
        views: Texts of views, by name.
        untyped: Queries that were written without regard to types.
    """

    name: str
    tables: Mapping[str, str]
    queries: Mapping[str, str]
    views: Mapping[str, ViewText] = field(default_factory=dict)
    untyped: frozenset[str] = frozenset()

    def columns(self, query: str) -> list[str]:
        """Columns of the tables that a query names, none twice."""
        named = [table for table in self.tables if re.search(rf"(?i)\b{table}\b", query)]
        declared = (StructType.fromDDL(self.tables[table]) for table in named)
        return sorted({field.name for each in declared for field in each.fields})


@dataclass(frozen=True)
class SparkRefusal:
    """Why Spark refuses a query.

    Args:
        condition: Its name for that.
        name: The name that it is about, quoted; empty where it is about none.
        message: What it says.
    """

    condition: str
    name: str
    message: str


_WHOLE = {"struct": "struct<city: string, zip: int>"}
"""What a type stands for that the specs do not say in full."""


def _declared(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in columns)


def suites() -> tuple[Suite, ...]:
    """All suites."""
    shop = {name: columns for name, (columns, _) in SPARK_TABLES.items()}
    for name, columns in TABLES.items():
        shop[name] = ", ".join(f"{column} {_WHOLE.get(type_, type_)}" for column, type_ in columns.items())
    specs = [query for query, _ in cases("reading.spec")]
    corpus = {query: query for query in (*QUERIES, *SPARK_QUERIES, *specs)}
    corpus["scalars"] = "SELECT " + ",\n".join(f"({text}\n) AS x{i}" for i, text in enumerate(SCALARS)) + " FROM o"
    return (
        Suite("shop", shop, corpus, {"big": VIEWS["big"]}, frozenset(specs)),
        Suite(
            "tpch",
            {name: _declared(columns) for name, columns in tpch.COLUMNS.items()},
            {file.stem: file.read_text(encoding="utf-8") for file in sorted(_TPCH22.glob("*.sql"))},
        ),
        Suite("tpcds", {name: _declared(columns) for name, columns in tpcds.COLUMNS.items()}, tpcds.QUERIES),
        Suite("nexmark", {name: _declared(columns) for name, columns in nexmark.COLUMNS.items()}, nexmark.QUERIES),
        *(_fixture(file.stem, case) for file, case in _acid() if all(t.name != CLOCK.table for t in case.tables)),
    )


def _acid() -> Iterator[tuple[Path, Case]]:
    """Fixtures. Of those with a clock, which is no table of Spark's, the reader is given another text."""
    for file in sorted(_ACID.glob("*.txt")):
        yield file, parse(file.read_text(encoding="utf-8")).case


def _fixture(name: str, case: Case) -> Suite:
    return Suite(name, {table.name: _declared(table.columns) for table in case.tables}, {"view": case.query})


class Court:
    """A session with the empty tables of one suite at a time.

    Args:
        session: A session of its own: names and views are seen by nobody else.
        warehouse: Where tables are.
    """

    def __init__(self, session: SparkSession, warehouse: Path) -> None:
        self.session = session
        session.conf.set(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
        session.conf.set(f"spark.sql.catalog.{CATALOG}.type", "hadoop")
        session.conf.set(f"spark.sql.catalog.{CATALOG}.warehouse", str(warehouse))
        session.sql(f"CREATE NAMESPACE {CATALOG}.shop")
        session.sql(f"USE {CATALOG}.shop")
        self.suite = Suite("", {}, {})
        self.schemas: dict[str, tuple[Column, ...]] = {}
        self._described: dict[str, tuple[Column, ...]] = {}
        self._frames: dict[str, DataFrame] = {}
        self._made: dict[str, str] = {}

    def sit(self, suite: Suite) -> None:
        """Have the tables of a suite; every third column is never NULL."""
        self.suite = suite
        self._described.clear()
        self._frames.clear()
        for name, columns in suite.tables.items():
            fields = [
                StructField(field.name, field.dataType, at % 3 > 0)
                for at, field in enumerate(StructType.fromDDL(columns).fields)
            ]
            self.schemas[name] = tuple(Column(f.name, type_text(f.dataType), f.nullable) for f in fields)
            if suite.name == "shop":
                declared = (f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.schemas[name])
                self.session.sql(f"CREATE TABLE {CATALOG}.shop.{name} ({', '.join(declared)}) USING iceberg")
            elif self._made.get(name) != columns:
                self._empty(StructType(fields)).createOrReplaceTempView(name)
                self._made[name] = columns
        for name, view in suite.views.items():
            names = f" ({', '.join(view.columns)})" if view.columns else ""
            self.session.sql(f"CREATE TEMPORARY VIEW {name}{names} AS {view.sql}")

    def _empty(self, schema: StructType) -> DataFrame:
        """No rows, made by Java: PySpark takes ten times as long."""
        java: Any = self.session
        types = java._jvm.org.apache.spark.sql.types.DataType
        rows = java._jvm.java.util.ArrayList()
        return DataFrame(java._jsparkSession.createDataFrame(rows, types.fromJson(schema.json())), self.session)

    def describe(self, sql: str) -> tuple[Column, ...]:
        """The analysed schema of a text, by Spark."""
        if sql not in self._described:
            fields = self.frame(sql).schema.fields
            self._described[sql] = tuple(Column(f.name, type_text(f.dataType), f.nullable) for f in fields)
        return self._described[sql]

    def frame(self, sql: str) -> DataFrame:
        """A text, analysed."""
        if self.suite.name != "shop":
            sql = sql.replace(f"`{CATALOG}`.`{self.suite.name}`.", "")
        if sql not in self._frames:
            with translated(sql):
                self._frames[sql] = self.session.sql(sql)
        return self._frames[sql]

    def refusal(self, query: str) -> SparkRefusal | None:
        """Why Spark refuses a query; None where it does not."""
        try:
            self.frame(query)
        except HeadraceError as error:
            cause: Any = error.__cause__
            known = isinstance(cause, PySparkException)
            condition = (cause.getCondition() if known else None) or type(cause).__name__
            parameters = (cause.getMessageParameters() if known else None) or {}
            return SparkRefusal(condition, parameters.get("objectName", ""), error.message)
        return None

    def reading(self, query: str, *, ask: bool) -> Reading:
        """Read a query.

        Args:
            query: The text.
            ask: Whether the reader asks Spark, as it does outside of tests.
        """
        return read(query, resolve=self._resolve, schema=self._schema, describe=self.describe if ask else None)

    def dispute(self, query: str, tree: Relation, *, typed: bool = True) -> Dispute:
        """What only Spark says of a query, and what only the reader says.

        Args:
            query: The text.
            tree: What the reader makes of it.
            typed: Whether types and nullability are compared, for which Spark analyses the algebra as well.
        """
        columns = (self.describe(query), self.describe(lower(tree, _by_name))) if typed else ((), ())
        plan = analysed(self.frame(query))
        return Dispute(query, spark_facts.facts_of(plan), algebra_facts.facts_of(tree), columns)

    def _resolve(self, parts: tuple[str, ...]) -> TableName:
        if parts[:-1] not in ((), ("shop",), (CATALOG, "shop")):
            raise UserError("TABLE_NOT_FOUND", f"There is no table {'.'.join(parts)}.")
        return TableName(CATALOG, (self.suite.name,), parts[-1])

    def _schema(self, name: TableName) -> tuple[Column, ...] | ViewText:
        view = self.suite.views.get(name.table)
        if view is not None:
            return ViewText(view.sql, self._resolve, view.columns)
        if name.table not in self.suite.tables:
            raise UserError("TABLE_NOT_FOUND", f"There is no table {name}.")
        return self.schemas[name.table]


def _by_name(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Scan)
    return leaf.source.sql
