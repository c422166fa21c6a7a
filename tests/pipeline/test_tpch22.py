"""The queries of TPC-H on Spark and Iceberg: every table changes, every stream table follows and is verified.

Two of them: q02 and q13, which no other test on Spark has the like of over so many rows. All are DIFFERENTIAL, as AUTO
would rather recompute such small tables. Those whose result stays the same in the first round play a second one.
HEADRACE_TEST_LONG=1 plays all 22 through twenty rounds, and lets AUTO choose after the last; whole histories of all 22
are played on DuckDB, by tests/fast/differential/test_tpch22.py; `NOT IN` and `NOT EXISTS` on Spark, by
tests/spark/test_subqueries.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from kit import tpch_changes as changes
from kit.long_tests import LONG
from kit.semijoins import small_sources_too

from headrace.api.facade import Headrace
from headrace.demo import tpch, tpch22
from headrace.results.refresh_results import Mode

SCALE = 0.01
EVERY = 200
ROUNDS = 20 if LONG else 2
SOME = ("q02", "q13")
"""A correlated subquery below joins of five tables, and groups of an outer join's groups."""

HALVES = (tpch22.NAMES[::2], tpch22.NAMES[1::2])


@pytest.mark.parametrize("played", HALVES if LONG else [SOME], ids=len)
def test_tpch_follows(
    hr: Headrace, ns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: tuple[str, ...]
) -> None:
    small_sources_too(monkeypatch)
    tables = [table for table in tpch.TABLES if any(table in tpch22.text(name) for name in played)]
    tpch.generate(tmp_path, SCALE, tables)
    _run(hr, tpch.load_statements(tmp_path, ns, tables))
    hr.spark.sql(f"USE lake.{ns}")
    names = {f"{ns}.{name}": name for name in played}
    for name, query in names.items():
        hr.create_stream_table(name, tpch22.text(query), refresh_mode="DIFFERENTIAL")
    still = set(names)
    for number in range(1, ROUNDS + 1):
        due = [name for name in names if LONG or name in still]
        _run(hr, (sql for sql in changes.everything(number, EVERY) if _target(sql) in tables))
        for result in hr.refresh(due):
            assert result.mode is not Mode.FULL, result
            still -= {result.name} if result.rows_inserted + result.rows_deleted else set()
        assert [v for v in hr.verify(due) if not v.ok] == [], f"round {number}"
    assert still == set(), "a result that never changes proves nothing"
    if LONG:
        for name in names:
            hr.alter_stream_table(name, refresh_mode="AUTO")
        _run(hr, changes.rf1(ROUNDS + 1, EVERY))
        hr.refresh(list(names))
        assert [v for v in hr.verify(list(names)) if not v.ok] == []


def _target(sql: str) -> str:
    """The table that a statement changes."""
    return sql.replace(" INTO ", " ").replace(" FROM ", " ").split()[1]


def _run(hr: Headrace, statements: Iterable[str]) -> None:
    for sql in statements:
        hr.spark.sql(sql)
