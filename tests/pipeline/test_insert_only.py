"""Sources that only gain rows: what queries make of these is written as it is computed."""

from __future__ import annotations

from kit.sparks import heard

from headrace.api.facade import Headrace
from headrace.events import StageFinished
from headrace.names import LAKE, TableName
from headrace.results.refresh_results import Mode

SETUP = """
CREATE TABLE {0}.t USING iceberg
    AS SELECT CAST(id % 7 AS INT) AS k, CAST(id AS INT) AS v, concat('s', id) AS s FROM range(40);
CREATE TABLE {0}.names USING iceberg AS SELECT CAST(id AS INT) AS k, concat('n', id) AS name FROM range(5);
CREATE STREAM TABLE {0}.plain REFRESH MODE DIFFERENTIAL AS SELECT k, length(s) AS n FROM {0}.t WHERE v >= 10;
CREATE STREAM TABLE {0}.joined REFRESH MODE DIFFERENTIAL
    AS SELECT t.k, n.name FROM {0}.t AS t JOIN {0}.names AS n ON t.k = n.k UNION ALL SELECT k, s FROM {0}.t;
CREATE STREAM TABLE {0}.read REFRESH MODE DIFFERENTIAL AS SELECT k, s FROM {0}.t WHERE v > 1;
CREATE STREAM TABLE {0}.reader REFRESH MODE DIFFERENTIAL AS SELECT k, count(*) AS n FROM {0}.read GROUP BY k
"""
NAMES = ("plain", "joined", "read", "reader")


def made(hr: Headrace, ns: str, count: int) -> list[str]:
    """The first stream tables."""
    hr.sql(";".join(SETUP.split(";")[: 2 + count]).format(ns))
    return [f"{ns}.{name}" for name in NAMES[:count]]


def follow(hr: Headrace, names: list[str]) -> dict[str, tuple[int, int]]:
    """Rows inserted and deleted by refreshing them all."""
    done = hr.refresh(names)
    assert {result.mode for result in done} == {Mode.DIFFERENTIAL}
    return {result.name.rpartition(".")[2]: (result.rows_inserted, result.rows_deleted) for result in done}


def test_rows_are_added_as_often_as_they_come(hr: Headrace, ns: str) -> None:
    names = made(hr, ns, 4)
    hr.sql(f"INSERT INTO {ns}.t SELECT 1, 20, 'same' FROM range(3)")
    assert follow(hr, names) == {"plain": (3, 0), "joined": (6, 0), "read": (3, 0), "reader": (1, 1)}
    hr.sql(f"INSERT INTO {ns}.names VALUES (1, 'again')")
    assert follow(hr, names[1:2])["joined"][1] == 0
    hr.sql(f"DELETE FROM {ns}.t WHERE s = 'same' AND k = 1")
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 30, 'other one')")
    assert follow(hr, names)["plain"] == (1, 3)
    assert all(result.ok for result in hr.verify(names))


def test_what_a_query_makes_nothing_of_is_no_new_version(hr: Headrace, ns: str) -> None:
    names = made(hr, ns, 1)
    catalog, name = hr._catalog, TableName(LAKE, (ns,), NAMES[0])
    before = catalog.newest_versions()[name]
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 3, 'small')")
    assert follow(hr, names[:1]) == {"plain": (0, 0)}
    assert catalog.newest_versions()[name] == before
    assert catalog.dirty_staging() == ()
    hr.sql(f"INSERT INTO {ns}.t VALUES (1, 30, 'large')")
    assert follow(hr, names[:1]) == {"plain": (1, 0)}
    assert catalog.newest_versions()[name].version == before.version + 1
    assert hr.verify(names[0]).ok


def test_it_takes_one_statement(hr: Headrace, ns: str, over_connect: bool) -> None:
    names = made(hr, ns, 2)
    hr.sql(f"INSERT INTO {ns}.t SELECT 1, 20, 'same' FROM range(3)")
    explained = str(hr.explain(names[0]))
    assert "append staging" in explained
    assert "GROUP BY" not in explained.partition("DIFFERENTIAL: SQL")[2]
    unsubscribe = hr.events.subscribe(lambda event: heard(hr.spark) if isinstance(event, StageFinished) else None)
    _, second = hr.refresh(names, max_concurrent=1)
    unsubscribe()
    assert second.jobs == (None if over_connect else 1)  # the first has read the change, which is kept for the others
