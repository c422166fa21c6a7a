"""A change that several stream tables read is looked for once, and let go when the next one comes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.api import Headrace
from headrace.engine.results import Mode

MODES = ("merge-on-read", "copy-on-write")
QUERIES = {
    "totals": "SELECT k, sum(v) AS v FROM {0}.t GROUP BY k",
    "rows": "SELECT k, s FROM {0}.t WHERE v > 1",
    "pairs": "SELECT a.s, b.v FROM {0}.t AS a JOIN {0}.t AS b ON a.k = b.k",
}


def kept(hr: Headrace) -> frozenset[str]:
    """Temporary views in which changes are kept."""
    return hr._engine()[1].changes.views


@pytest.fixture(params=MODES)
def names(request: pytest.FixtureRequest, hr: Headrace, ns: str) -> list[str]:
    modes = ", ".join(f"'write.{verb}.mode' = '{request.param}'" for verb in ("delete", "update", "merge"))
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT, v INT, s STRING) USING iceberg TBLPROPERTIES ({modes})")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t SELECT id % 7, id, concat('s', id) FROM range(40)")
    for name, query in QUERIES.items():
        hr.create_stream_table(f"{ns}.{name}", query.format(ns), refresh_mode="DIFFERENTIAL")
    return [f"{ns}.{name}" for name in QUERIES]


def change(hr: Headrace, ns: str, turn: int) -> None:
    hr.spark.sql(f"DELETE FROM lake.{ns}.t WHERE v % 9 = {turn}")
    hr.spark.sql(f"UPDATE lake.{ns}.t SET v = v + 100, s = 'moved' WHERE v % 11 = {turn}")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t SELECT id % 7, id, 'new' FROM range({1000 * turn}, {1000 * turn + 5})")


def test_it_is_kept_for_those_that_have_yet_to_read_it(hr: Headrace, ns: str, names: list[str]) -> None:
    change(hr, ns, 1)
    before = kept(hr)
    assert all(result.mode is Mode.DIFFERENTIAL for result in hr.refresh(names))
    first = kept(hr) - before
    assert len(first) == 1
    change(hr, ns, 2)
    hr.refresh(names[0])
    second = kept(hr) - before
    assert len(second) == 1
    assert not first & second
    hr.refresh(names)
    assert kept(hr) - before == second
    assert all(v.ok for v in hr.verify(names))


def test_the_last_to_read_a_change_keeps_it_for_nobody(hr: Headrace, ns: str, names: list[str]) -> None:
    change(hr, ns, 1)
    hr.refresh(names[:2])
    hr._engine()[1].changes.clear()
    before = kept(hr)
    assert hr.refresh(names[2]).mode is Mode.DIFFERENTIAL
    assert kept(hr) == before
    assert hr.verify(names[2]).ok


def test_several_may_read_it_at_once(hr: Headrace, ns: str, names: list[str]) -> None:
    for turn in (1, 2, 3):
        change(hr, ns, turn)
        with ThreadPoolExecutor(len(names)) as pool:
            assert all(result.mode is Mode.DIFFERENTIAL for result in pool.map(hr.refresh, names))
        assert all(v.ok for v in hr.verify(names))
