"""Random rows of TPC-DS's tables in which keys meet, and what queries compare with is often there."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from functools import lru_cache
from random import Random

from headrace.algebra.schema import Column
from kit import tpcds
from kit.case import Row, Table

_WORDS = sorted({word for query in tpcds.QUERIES.values() for word in re.findall(r"'([^']*)'", query)})


def table(name: str, queries: str, random: Random, size: int = 30) -> Table:
    """A table with its first rows; arguments as for `row`."""
    columns = tpcds.COLUMNS[name]
    return Table(name, columns, tuple(row(queries, columns, random) for _ in range(size)))


def row(queries: str, columns: tuple[Column, ...], random: Random) -> Row:
    """A row.

    Args:
        queries: The texts whose constants it is to have.
        columns: Its columns.
        random: Chance.
    """
    return tuple(_value(queries, column, random) for column in columns)


def _value(queries: str, column: Column, random: Random) -> object:
    if random.random() < 0.03:
        return None
    if column.type == "date":
        return datetime.date(2000, 6, 1) + datetime.timedelta(days=random.randrange(4))
    if column.type == "string":
        compared, own = _compared(queries, column.name), _constants(queries)
        met = bool(compared) and random.random() < 0.5
        return random.choice(compared if met else (*own, *own, random.choice(_WORDS)))
    if column.type != "int":
        return Decimal(random.randrange(100, 2000)) / 100
    if column.name.endswith("_sk"):
        return random.randrange(1, 7)
    if column.name.endswith("_number"):
        return random.randrange(1, 21)
    numbers = re.findall(rf"\b{column.name} = (\d+)", queries)
    return int(random.choice([*numbers, *numbers, str(random.randrange(1, 9))]))


@lru_cache(maxsize=1000)
def _constants(queries: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'([^']*)'", queries))


@lru_cache(maxsize=10000)
def _compared(queries: str, column: str) -> tuple[str, ...]:
    """The strings that a column is compared with."""
    lists = re.findall(rf"\b{column} (?:=|IN) (\('[^)]*\)|'[^']*')", queries)
    return tuple(word for each in lists for word in re.findall(r"'([^']*)'", each))
