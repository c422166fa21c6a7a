"""Sessions in random histories: rows that merge and split them come and go; maintained equals recomputed."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.histories import histories
from kit.long_tests import LONG
from kit.maintained import replay
from kit.values import rows

from headrace.algebra.schema import Column

EXECUTOR = DuckExecutor()
TIMES = int(os.environ.get("HEADRACE_EXAMPLES", "30" if LONG else "1"))
COLUMNS = (Column("k", "int"), Column("v", "int"), Column("ts", "timestamp_ntz"))

GAPS = (
    "'15 hours'",  # from one moment to the very next
    "'9 hours'",
    "'1 day'",
    "CASE WHEN v > 1 THEN '15 hours' WHEN v > 0 THEN '-1 day' WHEN v = 0 THEN '3 days' END",
)
QUERIES = (
    "SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n FROM t GROUP BY k, {w}",
    "SELECT k, {w}.start AS s, max(v) AS m, min(v) AS l, count(DISTINCT v) AS d FROM t GROUP BY k, {w}",
    "SELECT session_window.end AS e, sum(v) AS total FROM t WHERE v > -1 GROUP BY {w} HAVING count(*) > 1",
    "SELECT v + k AS x, v, session_window.start AS s, count(k) AS n FROM t GROUP BY v + k, v, {w}",
    "SELECT k, count(*) AS n, max(e) AS e FROM (SELECT k, session_window.end AS e FROM t GROUP BY k, {w}) GROUP BY k",
    "SELECT s, count(*) AS n FROM (SELECT k, session_window.start AS s FROM t GROUP BY k, {w}) GROUP BY s",
    "SELECT k, w.start AS s, row_number() OVER (PARTITION BY k ORDER BY w.start) AS r "
    "FROM (SELECT k, {w} AS w FROM t GROUP BY k, {w})",
    "SELECT u.v, q.n FROM u LEFT JOIN (SELECT k, {w}, count(*) AS n FROM t GROUP BY k, {w}) AS q ON u.k = q.k",
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query over sessions, and a history of its tables."""
    names = ("t", "u") if "FROM u" in (query := draw(st.sampled_from(QUERIES))) else ("t",)
    tables = tuple(Table(name, COLUMNS, tuple(draw(st.lists(rows(COLUMNS), max_size=8)))) for name in names)
    written = query.replace("{w}", f"session_window(ts, {draw(st.sampled_from(GAPS))})")
    return Case(written, tables, draw(histories(tables)))


@settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False, max_examples=10 * TIMES)
@given(cases())
def test_sessions_merge_and_split(case: Case) -> None:
    try:
        replay(EXECUTOR, case)
    except Exception:
        note(case.script())
        raise
