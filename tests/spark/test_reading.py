"""On Spark too, what is read returns what was written: same columns, same types, same rows."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from fast.sql.corpus import QUERIES, SCALARS, SPARK_QUERIES, SPARK_TABLES
from kit.sparks import interpreting
from spark.conftest import Lake

from headrace.algebra.relations import Scan, Stored
from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.spark.errors import translated
from headrace.spark.runner import SparkRunner
from headrace.spark.type_texts import type_text
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


@functools.cache
def schema_of(runner: SparkRunner, name: TableName) -> tuple[Column, ...]:
    return runner.describe(f"SELECT * FROM {name.sql}")


def lowered(runner: SparkRunner, query: str) -> tuple[str, str]:
    """The query over the tables of the lake, and the same through the algebra."""

    def pinned(text: str) -> str:
        return substitute(text, lambda r: resolve(r.parts).sql + ("" if r.has_alias else f" AS `{r.parts[-1]}`"))

    bare = query.replace("shop.", "")
    schema = functools.partial(schema_of, runner)
    found = read(bare, resolve=resolve, schema=schema, describe=lambda text: runner.describe(pinned(text)))
    assert found.tree is not None, found.refusals
    tree = with_types(found.tree, lambda relation: runner.describe(lower(relation, bind)))
    return pinned(bare), lower(tree, bind)


def answer(runner: SparkRunner, sql: str) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The columns, and the rows, or the code of the error that both sides must then have in common.

    Analysed once: that takes Spark as long as reading so few rows.
    """
    with translated():
        frame = runner.session.sql(sql)
        columns = [(field.name, type_text(field.dataType)) for field in frame.schema.fields]
    try:
        with translated():
            return columns, Counter(repr(tuple(row)) for row in frame.collect())
    except UserError as error:
        return columns, Counter([error.code])


@pytest.mark.parametrize("query", [*QUERIES, *SPARK_QUERIES])
def test_queries(runner: SparkRunner, query: str) -> None:
    original, ours = lowered(runner, query)
    assert answer(runner, ours) == answer(runner, original)


def test_scalars(runner: SparkRunner) -> None:
    """All in one query, because it is their text that is tested and not the reading of SELECT."""
    usable = [text for text in SCALARS if "shop." not in text]
    items = ",\n".join(f"({text}\n) AS x{i}" for i, text in enumerate(usable))
    original, ours = lowered(runner, f"SELECT {items} FROM o")
    assert answer(runner, ours) == answer(runner, original)
