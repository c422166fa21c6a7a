"""Queries of the corpus through histories in which exactly one source changes, each in turn, and sets of few.

A change of one source leaves parts of a program out, and of a companion parts as they are: what holds when everything
changes may not hold then. Every second query is played, and all with HEADRACE_TEST_LONG.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from fast.differential.test_random_histories import FAST, TIMES
from fast.differential.test_tpcds import CASTS
from fast.sql.corpus import QUERIES
from hypothesis import given, note, settings
from hypothesis.errors import UnsatisfiedAssumption
from kit import nexmark, tpcds, tpcds_rows
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.fixture import parse
from kit.long_tests import one_in
from kit.maintained import Maintained
from kit.queries import cases
from kit.source_subsets import histories

from headrace.algebra.schema import Column

EXECUTOR = DuckExecutor()
ACID = sorted((Path(__file__).parent / "acid").glob("*.txt"))


def follow(case: Case) -> None:
    """Play each history of a case, in which after every window contents equal the query's."""
    for history in histories(case):
        view = Maintained(EXECUTOR, history)
        for window in history.windows:
            view.step(window)


@pytest.mark.parametrize("path", one_in(4, ACID), ids=lambda path: path.stem)
def test_acid(path: Path) -> None:
    follow(parse(path.read_text()).case)


HAVING = (
    "SELECT d, sum(s) AS s FROM e GROUP BY d HAVING sum(s) > (SELECT sum(x) / 10 FROM b)",
    "SELECT d, sum(s) AS s, min(s) AS least FROM e GROUP BY d HAVING sum(s) > (SELECT min(x) FROM b) "
    "AND min(s) < (SELECT max(x) FROM b)",
    "SELECT e.d, count(*) AS n FROM e WHERE s >= (SELECT avg(s) FROM e) OR s < (SELECT max(x) FROM b) GROUP BY e.d",
)
"""Companions of several parts, of which one changes."""


@pytest.mark.parametrize("query", HAVING)
def test_a_companion_of_which_one_part_changes(query: str) -> None:
    e = Table("e", (Column("d", "string"), Column("s", "decimal(10,2)")), (("a", 10), ("b", 20), ("c", 30), ("c", 5)))
    b = Table("b", (Column("d", "string"), Column("x", "decimal(12,2)")), (("a", 100), ("q", 62), ("b", 44), ("b", 1)))
    follow(Case(query, (e, b)))


@pytest.mark.parametrize("name", one_in(5, sorted(tpcds.QUERIES.keys() - tpcds.UNMOVED)))
def test_tpcds(name: str) -> None:
    query = tpcds.QUERIES[name].replace(*CASTS.get(name, ("", "")))
    random = Random(name)
    read = [table for table in tpcds.COLUMNS if re.search(rf"\b{table}\b", query)]
    tables = tuple(tpcds_rows.table(table, query, random) for table in read)
    follow(Case(query, tables))


@pytest.mark.parametrize("name", one_in(2, list(nexmark.QUERIES)))
def test_nexmark(name: str) -> None:
    random = Random(name)
    tables = nexmark.tables(random)
    follow(Case(nexmark.QUERIES[name], tables, nexmark.windows(tables, 2, random)))


_DAY = datetime.date(2024, 2, 29)

CORPUS = (
    Table(
        "o",
        tuple(
            Column(*each)
            for each in (
                ("id", "int"),
                ("region", "string"),
                ("amount", "decimal(12,2)"),
                ("d", "date"),
                ("flag", "boolean"),
                ("f", "double"),
            )
        ),
        (
            (1, "EU", Decimal("10.50"), _DAY, True, 1.5),
            (2, "US", Decimal("20.00"), datetime.date(2023, 1, 31), False, 0.0),
            (3, None, None, None, None, None),
            (1, "EU", Decimal("10.50"), _DAY, True, 1.5),
        ),
    ),
    Table(
        "c",
        (Column("id", "int"), Column("region", "string"), Column("name", "string")),
        ((1, "EU", "Ann"), (2, "EU", "Bob"), (2, "US", "Cid"), (5, None, "Dot")),
    ),
    Table(
        "t",
        (Column("a", "int"), Column("b", "int"), Column("c", "int")),
        ((1, 2, 3), (1, 5, 6), (2, None, 9), (None, 4, 4)),
    ),
)
"""The tables of the corpus without nested columns, which a bag of the tests cannot hold, and without instants."""

NESTED = re.compile(r"\bts\b|address|\barr\b|struct|array|\bmap\b|explode|collect|\[", re.IGNORECASE)
FLAT = one_in(4, [query for query in QUERIES if not NESTED.search(query)])


PARTS = 3
"""The corpus is played in so many parts, of which workers take one each."""


@pytest.mark.parametrize("part", range(PARTS))
def test_the_corpus_of_the_reader(part: int) -> None:
    followed, refused = 0, []
    queries = FLAT[part::PARTS]
    for query in queries:
        tables = tuple(table for table in CORPUS if re.search(rf"\b{table.name}\b", query))
        case = Case(query, tables)
        try:
            Maintained(EXECUTOR, case)
        except (AssertionError, UnsatisfiedAssumption):
            refused.append(query)  # of floats, say; what it is refused for is judged elsewhere
            continue
        follow(case)
        followed += 1
    assert followed > 0.7 * len(queries), refused


@settings(FAST, max_examples=2 * TIMES)
@given(cases(depth=2, windows=2))
def test_random_queries(case: Case) -> None:
    try:
        follow(case)
    except Exception:
        note(case.script())
        raise
