"""Scalars keep the user's own text; only names of columns change."""

from __future__ import annotations

import re

import pytest
from fast.sql.corpus import SCALARS, SPARK_TABLES

from headrace.algebra.relations import Project
from headrace.algebra.scalar import Scalar
from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read

COLUMNS = tuple(Column(name, "any") for name in re.findall(r"(\w+) [A-Z]+", SPARK_TABLES["o"][0]))


def scalar(text: str) -> Scalar:
    found = read(
        f"SELECT {text} AS x FROM o", resolve=lambda p: TableName(LAKE, ("shop",), p[-1]), schema=lambda _: COLUMNS
    )
    assert found.refusals == ()
    assert isinstance(found.tree, Project)
    return found.tree.items[0][1]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("text", SCALARS)
def test_the_text_is_kept(text: str) -> None:
    sql = re.sub(r"`o\.(\w+)`", r"\1", scalar(text).sql)
    unqualified = re.sub(r"`(\w+)`", r"\1", re.sub(r"(?<![\w'.])(`?o`?|shop\.o)\.(?=`?\w)", "", text))
    assert squeezed(sql) in (squeezed(unqualified), squeezed(unqualified[1:-1]), squeezed(unqualified[2:-2]))


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("id /* ; */ + -- line\n 1", "`o.id` + 1"),
        ("id/**/+/**/1", "`o.id` + 1"),
        ("(id+1)*2", "(`o.id`+1)*2"),
        ("((id))", "`o.id`"),
        ("(id, region)", "named_struct('id', `o.id`, 'region', `o.region`)"),
        ("(1, 'a')", "(1, 'a')"),
        ("id IN (1, id)", "`o.id` IN (1, `o.id`)"),
        ("O . `ID`", "`o.id`"),
        ("o.address.city", "`o.address`.city"),
        ("shop.o.address.`city`", "`o.address`.`city`"),
        ("'o.id' || \"id\"", "'o.id' || \"id\""),
        ("transform(arr, id -> id + o.id)", "transform(`o.arr`, id -> id + `o.id`)"),
        ("transform(arr, (id, region) -> id.x + region)", "transform(`o.arr`, (id, region) -> id.x + region)"),
        (
            "transform(arr, x -> transform(arr, id -> x + id) + id)",
            "transform(`o.arr`, x -> transform(`o.arr`, id -> x + id) + `o.id`)",
        ),
        ("named_struct('id', id).id", "named_struct('id', `o.id`).id"),
        ("struct(id, region AS d).d", "named_struct('id', `o.id`, 'd', `o.region`).d"),
        ("CAST(arr AS array<struct<id: int>>)", "CAST(`o.arr` AS array<struct<id: int>>)"),
        ("CAST(CAST(id AS string) AS int)", "CAST(CAST(`o.id` AS string) AS int)"),
        ("id::decimal(10, 2) + id", "`o.id`::decimal(10, 2) + `o.id`"),
        ("arr::array<array<int>>[id]", "`o.arr`::array<array<int>>[`o.id`]"),
        ("d - INTERVAL '1-2' YEAR TO MONTH", "`o.d` - INTERVAL '1-2' YEAR TO MONTH"),
        ("mask(region, lowerChar => id)", "mask(`o.region`, lowerChar => `o.id`)"),
        ("timestampadd(HOUR, id, d)", "timestampadd(HOUR, `o.id`, `o.d`)"),
        ("CASE id WHEN 1 THEN d END IS NULL", "CASE `o.id` WHEN 1 THEN `o.d` END IS NULL"),
        ("region COLLATE utf8_lcase = 'eu'", "`o.region` COLLATE utf8_lcase = 'eu'"),
        ("position('U' IN region)", "position('U' IN `o.region`)"),
    ],
)
def test_only_columns_change(text: str, sql: str) -> None:
    assert scalar(text).sql == sql


def test_facts() -> None:
    assert scalar("transform(arr, id -> id + f)").columns == {"o.arr", "o.f"}
    assert scalar("1.5BD").columns == frozenset()
    assert scalar("address.city || region").columns == {"o.address", "o.region"}


def test_line_breaks_in_strings_stay() -> None:
    assert scalar("'a\n  b' ||\n id").sql == "'a\n  b' || `o.id`"
