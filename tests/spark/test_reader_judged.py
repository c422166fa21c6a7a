"""Spark as the judge of the reader: its own analysis of every query of the tests, compared with the reader's algebra.

What is compared: names, types and nullability of columns, and the columns of tables that each is made of; which tables
are read, and how often; every condition by the columns that it reads; outer joins with their padded side, semi- and
anti-joins; groups, and aggregate calls with DISTINCT and FILTER; windows with order and frame; set operations,
generators, LIMIT with its order. `kit.query_facts` says in which words, `kit.reader_differences` where both sides
differ and are right.

The same queries with a name changed show that both refuse the same names, and trace the others to the same columns.
Nothing is run, and tables are empty: all of it is analysis.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from kit.judged import Court, suites
from kit.long_tests import LONG, one_in
from kit.reader_differences import DIFFERENCES, LEFT_TO_SPARK, MISTAKES, STRICTER, TYPES, settled
from kit.renamed import renamed

from headrace.errors import HeadraceError
from headrace.spark.runner import SparkRunner

VARIANTS = 20 if LONG else 1
"""How many variants of a query with a name changed: `make test` changes one in every second query."""

NOT_UNDERSTOOD = re.compile(
    "could not be|could mean|differ in their number|Spark names the columns|is missing|neither grouped"
)
"""How the reader words what is no construct, but a name or a shape that it does not understand."""


@pytest.fixture
def court(runner: SparkRunner, tmp_path: Path) -> Court:
    return Court(runner.session.newSession(), tmp_path)


def test_spark_and_the_reader_understand_every_query_alike(court: Court) -> None:
    defects: list[str] = []
    occurred: set[str] = set()
    for suite in suites():
        court.sit(suite)
        for name, query in suite.queries.items():
            found, classes = _compared(court, query)
            occurred |= classes
            defects += [f"{suite.name}, {name}: {each}" for each in found]
    assert not defects, "\n".join(defects)
    assert {each.name for each in DIFFERENCES} - occurred == set(), "differences that no longer occur"


def _compared(court: Court, query: str) -> tuple[list[str], frozenset[str]]:
    """What is wrong with the reading of a query, and the classes of differences that it has."""
    refusal = court.refusal(query)
    if refusal is not None:
        known = query in court.suite.untyped and TYPES.holds(refusal, query, [])
        return ([] if known else [f"Spark refuses it: {refusal.message}"]), frozenset()
    alone, reading = court.reading(query, ask=False), court.reading(query, ask=True)
    if reading.tree is None:
        return [f"the reader refuses it: {each.message}" for each in reading.refusals], frozenset()
    # without Spark, the reader makes up the names of expressions
    pairs = zip(alone.columns, court.describe(query), strict=True)
    names = [f"{ours} is {c.name}" for ours, c in pairs if ours != c.name and not ours.startswith("col_")]
    dispute = court.dispute(query, reading.tree)
    classes = settled(dispute)
    return [*names, *dispute.left], classes


def test_spark_and_the_reader_refuse_the_same_mistakes(court: Court) -> None:
    court.sit(suites()[0])
    by_spark = {query for query in (*MISTAKES, *STRICTER.values()) if court.refusal(query) is not None}
    by_reader = {query for query in (*MISTAKES, *STRICTER.values()) if court.reading(query, ask=False).tree is None}
    assert by_spark == set(MISTAKES)
    assert by_reader == {*MISTAKES, *STRICTER.values()}


def test_spark_and_the_reader_know_the_same_names(court: Court) -> None:
    defects: list[str] = []
    occurred: set[str] = set()
    both = 0
    for number, suite in enumerate(suites()):
        court.sit(suite)
        for query in one_in(4, list(suite.queries.values()), number % 4):
            for variant in renamed(query, suite.columns(query), Random(query), VARIANTS):
                found, classes, read = _variant(court, variant, suite.columns(variant))
                occurred |= classes
                both += read
                defects += [f"{suite.name}, {variant}: {each}" for each in found]
    assert not defects, "\n".join(defects)
    assert both > 20, "variants that both understand"
    assert not LONG or {each.name for each in LEFT_TO_SPARK} <= occurred, "classes that no longer occur"


def _variant(court: Court, query: str, columns: list[str]) -> tuple[list[str], set[str], bool]:
    """What is wrong, which classes of queries are left to Spark, and whether both understand it."""
    refusal = court.refusal(query)
    try:
        reading = court.reading(query, ask=refusal is None)
    except HeadraceError as error:
        wrong = refusal is None and error.code != "DUPLICATE_COLUMN"
        return ([f"only the reader refuses it: {error}"] if wrong else []), set(), False
    if refusal is None and reading.tree is None:
        # a construct that is not maintained is refused whatever it reads
        doubts = [each.message for each in reading.refusals if NOT_UNDERSTOOD.search(each.message)]
        return [f"only the reader refuses it: {each}" for each in doubts], set(), False
    if refusal is None and reading.tree is not None:
        dispute = court.dispute(query, reading.tree, typed=False)
        settled(dispute)
        return dispute.left, set(), True
    if reading.tree is None:
        return [], set(), False
    assert refusal is not None
    classes = {each.name for each in LEFT_TO_SPARK if each.holds(refusal, query, columns)}
    return ([] if classes else [f"only Spark refuses it: {refusal.message}"]), classes, False
