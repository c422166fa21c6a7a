"""What a batch makes of a mirror."""

from __future__ import annotations

import duckdb
from fast.sources.postgres import messages as m
from kit.mirrored import translated

from headrace.sources.postgres.landing_sql import Spooled, change_sql


def test_a_bag_that_is_emptied_lists_no_row_twice() -> None:
    bag = m.table(identity="f", key=())
    columns = ", ".join(f'"{c.name}"' for c, _ in bag.typed)
    rows = ", ".join("(1, 'x', 'y')" for _ in range(3))
    change = translated(change_sql(bag, Spooled(None, 0, truncated=True), "`before`"))
    found = duckdb.sql(f'WITH "before" ({columns}) AS (VALUES {rows}) SELECT * FROM ({change})').fetchall()
    assert found == [(1, "x", "y", -3)]
