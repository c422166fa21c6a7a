"""Moving filters in random histories in which time goes on: after each refresh, maintained equals recomputed."""

from __future__ import annotations

import datetime as dt
import os

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from kit.case import Case, Table, Weighted, Window
from kit.duck import DuckExecutor
from kit.histories import OPERATIONS
from kit.long_tests import LONG
from kit.maintained import replay
from kit.values import rows

from headrace.algebra.schema import Column
from headrace.names import CLOCK, CLOCK_COLUMN

EXECUTOR = DuckExecutor()
TIMES = int(os.environ.get("HEADRACE_EXAMPLES", "30" if LONG else "1"))
COLUMNS = (Column("k", "int"), Column("v", "int"), Column("ts", "timestamp_ntz"), Column("d", "date"))
BEGIN = dt.datetime(2024, 3, 29, 12)

QUERIES = (
    "SELECT k, v, ts FROM t WHERE ts > now() - INTERVAL 1 DAY",
    "SELECT k, count(*) n, sum(v) s, min(v) m FROM t WHERE ts BETWEEN now() - INTERVAL 36 HOURS AND now() GROUP BY k",
    "SELECT k, max(v) m FROM t WHERE d >= current_date() - INTERVAL 30 DAYS GROUP BY k HAVING count(*) > 1",
    "SELECT t.k, t.v, u.v w FROM t JOIN u ON t.k = u.k AND t.ts > now() - INTERVAL 1 DAY WHERE u.d <= curdate()",
    "SELECT t.k, u.v w FROM t LEFT JOIN (SELECT * FROM u WHERE ts > now() - INTERVAL 1 DAY) u ON t.k = u.k",
    "SELECT t.k, u.k q, u.v w FROM (SELECT * FROM t WHERE ts <= now()) t "
    "FULL JOIN (SELECT * FROM u WHERE ts > now() - INTERVAL 1 DAY) u ON t.k = u.k",
    "SELECT t.k, u.v w FROM t LEFT JOIN u ON t.k = u.k AND u.ts > now() - INTERVAL 1 DAY AND u.v > 0",
    "SELECT t.v, u.v w FROM t RIGHT JOIN u ON t.ts BETWEEN now() - INTERVAL 2 DAYS AND now() AND t.k = u.k",
    "SELECT k, v FROM t LEFT ANTI JOIN u ON u.ts > now() - INTERVAL 1 DAY",
    "SELECT k, count(*) n FROM t LEFT SEMI JOIN u ON t.d <= current_date() AND t.k = u.k GROUP BY k",
    "SELECT DISTINCT k, d FROM t WHERE ts <= now() AND v > 0",
    "SELECT k FROM t WHERE CAST(ts AS DATE) = current_date",
    "SELECT k, v FROM t WHERE v = 1 OR ts > now() - INTERVAL 1 DAY",
    "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.ts > now() - INTERVAL 1 DAY)",
    "SELECT k, v FROM t WHERE k IN (SELECT k FROM u WHERE u.ts > now())",
    "SELECT k, ts, row_number() OVER (PARTITION BY k ORDER BY v DESC) n FROM t WHERE ts > now() - INTERVAL 1 DAY",
    "SELECT k, v, ts FROM t WHERE ts > now() - INTERVAL 1 DAY ORDER BY v DESC LIMIT 2",
    "SELECT k, n FROM (SELECT k, max(ts) m, count(*) n FROM t GROUP BY k) WHERE m > now() - INTERVAL 1 DAY",
    "SELECT k, count(*) n FROM t GROUP BY k HAVING max(ts) < now() - INTERVAL 1 DAY",
    "SELECT k, d FROM (SELECT k, ts, d FROM t UNION ALL SELECT v, ts, d FROM u) WHERE ts > now() AND d < curdate()",
    "SELECT k, v, (SELECT max(u.v) FROM u WHERE u.k = t.k AND u.ts <= now()) m FROM t WHERE ts < now()",
    "SELECT count(*) n, sum(v) s FROM t WHERE now() - INTERVAL 1 DAY < ts",
    "WITH r AS (SELECT * FROM t WHERE ts > now() - INTERVAL 2 DAYS) SELECT a.k, b.v FROM r a JOIN r b ON a.k = b.v",
    "WITH RECURSIVE r AS (SELECT k, v FROM t WHERE ts > now() - INTERVAL 1 DAY AND k > 0 UNION ALL "
    "SELECT u.k, u.v FROM r JOIN u ON u.v = r.k AND u.k > r.k AND u.ts < now()) SELECT * FROM r",
    "SELECT k, v FROM t WHERE ts > now() - INTERVAL 1 DAY EXCEPT ALL SELECT k, v FROM u WHERE ts > now()",
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query, and windows in which time goes on, tables change, or both."""
    names = ("t", "u")
    tables = tuple(Table(name, COLUMNS, tuple(draw(st.lists(rows(COLUMNS), max_size=6)))) for name in names)
    contents = {table.name: list(table.rows) for table in tables}
    now, windows = BEGIN, list[Window]()
    for _ in range(draw(st.integers(1, 4))):
        window: dict[str, tuple[Weighted, ...]] = {}
        step = draw(st.sampled_from((0, 1, 1, 17, 40)))
        if step:
            window[CLOCK.table] = ((-1, (str(now),)), (1, (str(now + dt.timedelta(hours=step)),)))
            now += dt.timedelta(hours=step)
        for table in tables:
            change = draw(st.sampled_from(OPERATIONS))(draw, table, contents[table.name]) if draw(st.booleans()) else ()
            for weight, row in change:
                contents[table.name].append(row) if weight > 0 else contents[table.name].remove(row)
            window[table.name] = tuple(change)
        windows.append(window)
    clock = Table(CLOCK.table, (Column(CLOCK_COLUMN, "timestamp_ntz"),), ((str(BEGIN),),))
    return Case(draw(st.sampled_from(QUERIES)), (*tables, clock), tuple(windows))


@settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False, max_examples=16 * TIMES)
@given(cases())
def test_rows_come_and_go_by_change_and_by_time(case: Case) -> None:
    try:
        replay(EXECUTOR, case)
    except Exception:
        note(case.script())
        raise
