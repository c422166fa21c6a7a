"""A change that several stream tables read is looked for once, and let go when all have it or the next one comes."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit.long_tests import LONG
from pyspark.sql import DataFrame, SparkSession

from headrace.api.facade import Headrace
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.names import LAKE, TableName
from headrace.refresh import gather_facts
from headrace.results.refresh_results import Mode

MODES = ("merge-on-read", "copy-on-write") if LONG else ("merge-on-read",)
ROWS = "SELECT CAST(id % 7 AS INT) AS k, CAST(id AS INT) AS v, concat('s', id) AS s FROM range(40)"
QUERIES = {
    "totals": "SELECT k, sum(v) AS v FROM {0}.t GROUP BY k",
    "rows": "SELECT k, s FROM {0}.t WHERE v > 1",
    "pairs": "SELECT a.s, b.v FROM {0}.t AS a JOIN {0}.t AS b ON a.k = b.k",
}


def kept(hr: Headrace) -> frozenset[str]:
    """Temporary views in which changes are kept."""
    return hr._engine().refresher.changes.views


@pytest.fixture(params=MODES)
def names(request: pytest.FixtureRequest, hr: Headrace, ns: str) -> list[str]:
    modes = ", ".join(f"'write.{verb}.mode' = '{request.param}'" for verb in ("delete", "update", "merge"))
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg TBLPROPERTIES ({modes}) AS {ROWS}")
    for name, query in QUERIES.items():
        hr.create_stream_table(f"{ns}.{name}", query.format(ns), refresh_mode="DIFFERENTIAL")
    return [f"{ns}.{name}" for name in QUERIES]


def change(hr: Headrace, ns: str, turn: int) -> None:
    hr.spark.sql(f"DELETE FROM lake.{ns}.t WHERE v % 9 = {turn}")
    hr.spark.sql(f"UPDATE lake.{ns}.t SET v = v + 100, s = 'moved' WHERE v % 11 = {turn}")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t SELECT id % 7, id, 'new' FROM range({1000 * turn}, {1000 * turn + 5})")


@pytest.mark.long
def test_it_is_kept_for_those_that_have_yet_to_read_it(hr: Headrace, ns: str, names: list[str]) -> None:
    before = kept(hr)
    change(hr, ns, 1)
    hr.refresh(names[:2])
    first = kept(hr) - before
    assert len(first) == 1
    change(hr, ns, 2)
    assert hr.refresh(names[0]).mode is Mode.DIFFERENTIAL
    second = kept(hr) - before
    assert len(second) == 1
    assert not first & second
    assert hr.refresh(names[1]).mode is Mode.DIFFERENTIAL
    assert kept(hr) == before
    hr.refresh(names[2])
    assert kept(hr) == before
    assert all(v.ok for v in hr.verify(names))


def test_the_last_to_read_a_change_keeps_it_for_nobody(hr: Headrace, ns: str, names: list[str]) -> None:
    change(hr, ns, 1)
    hr.refresh(names[:2])
    hr._engine().refresher.changes.clear()
    before = kept(hr)
    assert hr.refresh(names[2]).mode is Mode.DIFFERENTIAL
    assert kept(hr) == before
    assert hr.verify(names[2]).ok


def readers(hr: Headrace, name: str) -> int | None:
    """Of how many that read the change of its source a table knows."""
    namespace, _, table = name.partition(".")
    know = gather_facts.known(hr._catalog, TableName(LAKE, (namespace,), table))
    heads = hr._engine().refresher.heads().of(know.table.sources, frozenset(know.streams))
    (source,) = gather_facts.gather(know, heads, forced=False, tag="looked").sources
    return source.common and source.common.readers


def test_each_knows_how_many_read_it(hr: Headrace, ns: str, names: list[str]) -> None:
    hr.create_stream_table(f"{ns}.whole", f"SELECT k FROM {ns}.t", refresh_mode="FULL")
    hr.create_stream_table(f"{ns}.random", f"SELECT k, rand() AS r FROM {ns}.t")
    hr.spark.sql(f"DELETE FROM lake.{ns}.t WHERE v = 1")
    for name in names:  # whether the others have read it or not
        assert readers(hr, name) == len(names)
        hr.refresh(name)


@pytest.mark.long
def test_several_may_read_it_at_once(hr: Headrace, ns: str, names: list[str]) -> None:
    for turn in (1, 2):
        change(hr, ns, turn)
        with ThreadPoolExecutor(len(names)) as pool:
            assert all(result.mode is Mode.DIFFERENTIAL for result in pool.map(hr.refresh, names))
    assert all(v.ok for v in hr.verify(names))


HANDED = """
CREATE TABLE {0}.t USING iceberg AS {1};
CREATE STREAM TABLE {0}.rows REFRESH MODE DIFFERENTIAL AS SELECT k, v, s FROM {0}.t WHERE v > 1;
CREATE STREAM TABLE {0}.totals REFRESH MODE DIFFERENTIAL
    AS SELECT k, count(*) AS n, sum(v) AS v, max(s) AS s FROM {0}.rows GROUP BY k;
CREATE STREAM TABLE {0}.high REFRESH MODE DIFFERENTIAL AS SELECT k, v, s FROM {0}.totals WHERE n > 1;
CREATE STREAM TABLE {0}.others REFRESH MODE DIFFERENTIAL AS SELECT a.k, b.s FROM {0}.rows AS a JOIN {0}.t AS b USING (v)
"""
CHAIN = ("rows", "totals", "high", "others")


@pytest.fixture
def chain(hr: Headrace, ns: str) -> list[str]:
    hr.sql(HANDED.format(ns, ROWS))
    return [f"{ns}.{name}" for name in CHAIN]


@pytest.fixture
def asked(hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that Spark is given and that reads a change log of the test's tables."""
    found: list[str] = []
    sql, read = type(hr.spark).sql, re.compile(rf"FROM `?(lake|staging)`?\.`?_headrace`?\.`?{ns}_\w+_log\b")

    def told(session: SparkSession, text: str, *args: object, **kwargs: object) -> DataFrame:
        if read.search(text):
            found.append(text)
        return sql(session, text, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(type(hr.spark), "sql", told)
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_consumers_are_handed_the_change_and_read_no_log(
    hr: Headrace, ns: str, chain: list[str], asked: list[str], grouped: bool, over_connect: bool
) -> None:
    before = kept(hr)
    if grouped:  # each reads what the others have staged
        hr.sql(f"CREATE REFRESH GROUP {ns} AS {', '.join(chain)}")
    for turn in (1, 2) if LONG or not grouped else (1,):
        change(hr, ns, turn)
        assert {result.mode for result in hr.refresh(chain)} == {Mode.DIFFERENTIAL}
        assert bool(asked) is over_connect
        assert kept(hr) == before
    assert all(v.ok for v in hr.verify(chain))


@pytest.mark.long
def test_those_who_come_later_than_the_next_change_read_the_log_once(
    hr: Headrace, ns: str, chain: list[str], asked: list[str], over_connect: bool
) -> None:
    for turn in (1, 2):
        change(hr, ns, turn)
        hr.refresh(chain[0])
    assert bool(asked) is over_connect
    asked.clear()
    assert {result.mode for result in hr.refresh(chain)} == {Mode.DIFFERENTIAL, Mode.NO_CHANGE}
    assert len(asked) == (2 if over_connect else 1)  # and that of the totals
    assert f"{ns}_rows_" in asked[0]
    assert all(v.ok for v in hr.verify(chain))


@pytest.mark.long
def test_what_was_not_published_is_handed_to_nobody(
    hr: Headrace, ns: str, chain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(hr, ns, 1)

    def broken(*_: object) -> None:
        raise EnvironmentFault("CATALOG_UNAVAILABLE", "It went away.", retryable=True)

    with monkeypatch.context() as broke:
        broke.setattr(hr._catalog, "publish", broken)
        with pytest.raises(HeadraceError, match="CATALOG_UNAVAILABLE"):
            hr.refresh(chain[0])
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (3, 5000, 'later')")  # the same version will have other rows
    assert {result.mode for result in hr.refresh(chain)} == {Mode.DIFFERENTIAL}
    assert all(v.ok for v in hr.verify(chain))
