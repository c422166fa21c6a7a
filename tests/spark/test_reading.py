"""On Spark too, what is read returns what was written: same columns, same types, same rows."""

from __future__ import annotations

from collections import Counter

import pytest
from fast.sql.corpus import QUERIES, SCALARS, SPARK_QUERIES, SPARK_TABLES
from kit.sparks import interpreting
from spark.conftest import Lake

from headrace.algebra.relations import Scan, Stored
from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.spark.runner import SparkRunner
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.reader import read
from headrace.sql.references import substitute

SHOP = ("reading",)


def resolve(parts: tuple[str, ...]) -> TableName:
    return TableName(LAKE, SHOP, parts[-1])


def bind(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Scan)
    return leaf.source.sql


@pytest.fixture(scope="module")
def runner(lake: Lake) -> SparkRunner:
    return SparkRunner(interpreting(lake.runner.session))


@pytest.fixture(scope="module", autouse=True)
def shop(runner: SparkRunner) -> None:
    runner.run(f"CREATE NAMESPACE IF NOT EXISTS {LAKE}.{SHOP[0]}")
    for name, (columns, rows) in SPARK_TABLES.items():
        runner.run(f"CREATE OR REPLACE TABLE {resolve((name,)).sql} ({columns}) USING iceberg")
        runner.run(f"INSERT INTO {resolve((name,)).sql} VALUES {rows}")


def lowered(runner: SparkRunner, query: str) -> tuple[str, str]:
    """The query over the tables of the lake, and the same through the algebra."""

    def pinned(text: str) -> str:
        return substitute(text, lambda r: resolve(r.parts).sql + ("" if r.has_alias else f" AS `{r.parts[-1]}`"))

    def schema(name: TableName) -> tuple[Column, ...]:
        return runner.describe(f"SELECT * FROM {name.sql}")

    bare = query.replace("shop.", "")
    found = read(bare, resolve=resolve, schema=schema, describe=lambda text: runner.describe(pinned(text)))
    assert found.tree is not None, found.refusals
    tree = with_types(found.tree, lambda relation: runner.describe(lower(relation, bind)))
    return pinned(bare), lower(tree, bind)


def rows(runner: SparkRunner, sql: str) -> Counter[str]:
    """The rows, or the code of the error that both sides must then have in common."""
    try:
        return Counter(repr(tuple(row)) for row in runner.run(sql))
    except UserError as error:
        return Counter([error.code])


def kinds(runner: SparkRunner, sql: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in runner.describe(sql)]


@pytest.mark.parametrize("query", [*QUERIES, *SPARK_QUERIES])
def test_queries(runner: SparkRunner, query: str) -> None:
    original, ours = lowered(runner, query)
    assert kinds(runner, ours) == kinds(runner, original)
    assert rows(runner, ours) == rows(runner, original)


def test_scalars(runner: SparkRunner) -> None:
    """All in one query, because it is their text that is tested and not the reading of SELECT."""
    usable = [text for text in SCALARS if "shop." not in text]
    items = ",\n".join(f"({text}\n) AS x{i}" for i, text in enumerate(usable))
    original, ours = lowered(runner, f"SELECT {items} FROM o")
    assert kinds(runner, ours) == kinds(runner, original)
    assert rows(runner, ours) == rows(runner, original)
