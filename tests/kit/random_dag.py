"""A random pipeline of real stream tables, and random statements of users who change what it reads."""

from __future__ import annotations

import random
from collections.abc import Sequence

from headrace.api.facade import Headrace

SOURCES = ("c.x", "c.y", "c.z")

FRAGILE = "SELECT k, g, v + 1 div (k + 1) AS v FROM {a}"
"""Cannot be computed while a row of its input has -1 for k."""

POISON = f"INSERT INTO {SOURCES[0]} VALUES (-1, 0, 0)"
CURE = f"DELETE FROM {SOURCES[0]} WHERE k = -1"
"""What makes the first of the pipeline's tables, and whatever else is fragile below that source, fail; and the end
of it."""

QUERIES = (
    FRAGILE,
    "SELECT k, g, v FROM {a} WHERE v % 3 <> 1",
    "SELECT k, (g + 1) % 5 AS g, v + 1 AS v FROM {a}",
    "SELECT g AS k, g, sum(v % 100) AS v FROM {a} GROUP BY g",
    "SELECT DISTINCT g AS k, g, v % 4 AS v FROM {a}",
    "SELECT k, g, count(*) OVER (PARTITION BY g) AS v FROM {a}",
    "SELECT a.k, a.g, a.v % 100 + b.v AS v FROM {a} a JOIN (SELECT g, max(v) AS v FROM {b} GROUP BY g) b ON a.g = b.g",
    "SELECT a.k, a.g, coalesce(b.n, 0) AS v FROM {a} a LEFT JOIN (SELECT g, count(*) AS n FROM {b} GROUP BY g) b"
    " ON a.g = b.g",
    "SELECT k, g, v FROM {a} UNION ALL SELECT g AS k, g, min(v) AS v FROM {b} GROUP BY g",
    "SELECT k, g, v FROM {a} WHERE g IN (SELECT g FROM {b} WHERE v % 2 = 0)",
)
"""All have the columns k, g, v, so that any can read any; few rows come of few, and small numbers of small ones."""

_FIRST = (
    (FRAGILE, SOURCES[0], "none"),
    (QUERIES[1], "c.t00", "none"),
    (QUERIES[3], "c.t00", "none"),
    (QUERIES[6], "c.t01", "atomic"),  # and c.t02
)
"""What every pipeline begins with: a table that can fail, and a diamond below it. Each has what it reads first, and
what it wants of diamonds."""

_CONSISTENCIES = ("none", "none", "none", "atomic", "aligned")

NEAR = 6
"""A table reads sources, or some of so many tables before it."""


def make_pipeline(hr: Headrace, chance: random.Random, tables: int) -> None:
    """Make the sources, and stream tables over them that are not loaded yet."""
    hr.sql("CREATE NAMESPACE lake.c")
    for source in SOURCES:
        hr.sql(f"CREATE TABLE {source} (k BIGINT, g BIGINT, v BIGINT) USING iceberg")
        hr.sql(f"INSERT INTO {source} SELECT id, id % 5, id % 7 FROM range(40)")
    names = [f"c.t{number:02}" for number in range(tables)]
    for place, name in enumerate(names):
        a, b = chance.sample([*SOURCES, *names[max(0, place - NEAR) : place]], 2)
        query, consistency = chance.choice(QUERIES), chance.choice(_CONSISTENCIES)
        if place < len(_FIRST):
            (query, a, consistency), b = _FIRST[place], names[place - 1]
        options = {"diamond_consistency": consistency}
        hr.create_stream_table(name, query.format(a=a, b=b), schedule="ON CHANGE", initialize=False, options=options)


def statement(chance: random.Random, sources: Sequence[str] = SOURCES) -> str:
    """What a user does to a source."""
    source, number = chance.choice(sources), chance.randrange(10**6)
    return chance.choice(
        (
            f"INSERT INTO {source} SELECT id + {number}, id % 5, id % 7 FROM range({chance.randint(1, 9)})",
            f"UPDATE {source} SET v = (v + 1) % 50 WHERE k % 7 = {number % 7}",
            f"UPDATE {source} SET g = (g + 1) % 5 WHERE k % 11 = {number % 11}",
            f"DELETE FROM {source} WHERE k % 13 = {number % 13}",
        )
    )
