"""Aligned diamonds on Spark: a table reads older versions of what it reads until these agree."""

from __future__ import annotations

import datetime as dt

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.reasons import FullReason

DIAMOND = """
CREATE TABLE {ns}.a USING iceberg AS SELECT * FROM VALUES (1L, 10L), (2L, 20L) AS t(k, v);
CREATE STREAM TABLE {ns}.b REFRESH MODE DIFFERENTIAL AS SELECT k, v FROM {ns}.a;
CREATE STREAM TABLE {ns}.c REFRESH MODE DIFFERENTIAL AS SELECT k, count(*) AS n FROM {ns}.a GROUP BY k;
CREATE STREAM TABLE {ns}.d REFRESH MODE DIFFERENTIAL WITH (diamond_consistency = 'aligned')
    AS SELECT b.k, b.v, c.n FROM {ns}.b JOIN {ns}.c ON b.k = c.k
"""


def rows(hr: Headrace, table: str) -> set[tuple[int, ...]]:
    return {tuple(row) for row in hr.spark.table(f"lake.{table}").collect()}


@pytest.mark.long
def test_older_versions_are_read_until_they_agree(hr: Headrace, ns: str) -> None:
    hr.sql(DIAMOND.format(ns=ns))
    assert not [g for g in hr.diamond_groups() if g.name.startswith(f"{ns}.")]
    hr.sql(f"UPDATE {ns}.a SET v = 11 WHERE k = 1")
    hr.refresh(f"{ns}.b")
    assert hr.refresh(f"{ns}.d").mode.value == "NO_CHANGE"
    assert rows(hr, f"{ns}.d") == {(1, 10, 1), (2, 20, 1)}
    (info,) = hr.status([f"{ns}.d"])
    assert info.trails == {f"{ns}.b": 1}
    hr.maintain([f"{ns}.{name}" for name in "bcd"], older_than=dt.timedelta(0))  # keeps what may yet be read
    hr.sql(f"INSERT INTO {ns}.a VALUES (3, 30)")
    hr.refresh([f"{ns}.b", f"{ns}.c"])
    hr.sql(f"INSERT INTO {ns}.a VALUES (4, 40)")
    hr.refresh(f"{ns}.b")  # b is ahead again
    hr.maintain([f"{ns}.{name}" for name in "bcd"], older_than=dt.timedelta(0))
    result = hr.refresh(f"{ns}.d")
    assert result.mode.value == "DIFFERENTIAL"
    assert rows(hr, f"{ns}.d") == {(1, 11, 1), (2, 20, 1), (3, 30, 1)}
    hr.refresh()
    assert (4, 40, 1) in rows(hr, f"{ns}.d")
    assert hr.status([f"{ns}.d"])[0].trails == {}
    assert all(v.ok for v in hr.verify([f"{ns}.{name}" for name in "bcd"]))


@pytest.mark.long
def test_a_table_that_begins_before_a_change_log_does(hr: Headrace, ns: str) -> None:
    """The log of a source begins with its first reader, which may read an older version than the newest one."""
    *producers, reader = DIAMOND.format(ns=ns).split(";")
    hr.sql(";".join(producers))
    hr.sql(f"UPDATE {ns}.a SET v = 11 WHERE k = 1")
    hr.refresh(f"{ns}.b")
    hr.sql(reader)  # of the b from before that: c knows no other
    assert rows(hr, f"{ns}.d") == {(1, 10, 1), (2, 20, 1)}
    hr.refresh(f"{ns}.c")
    result = hr.refresh(f"{ns}.d")
    assert (result.mode.value, result.reason) == ("FULL", FullReason.HISTORY_EXPIRED)
    assert rows(hr, f"{ns}.d") == {(1, 11, 1), (2, 20, 1)}
    hr.sql(f"UPDATE {ns}.a SET v = 12 WHERE k = 1")
    hr.refresh([f"{ns}.b", f"{ns}.c"])
    assert hr.refresh(f"{ns}.d").mode.value == "DIFFERENTIAL"
    assert all(v.ok for v in hr.verify([f"{ns}.{name}" for name in "bcd"]))


def test_a_source_that_is_read_beside_what_follows_it(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT) USING iceberg;
    INSERT INTO {ns}.a VALUES (1);
    CREATE STREAM TABLE {ns}.b AS SELECT max(k) AS n FROM {ns}.a;
    CREATE STREAM TABLE {ns}.d WITH (diamond_consistency = 'aligned') AS SELECT k, n FROM {ns}.a, {ns}.b;
    INSERT INTO {ns}.a VALUES (2)
    """)
    hr.refresh(f"{ns}.d", full=True)  # recomputed from the old rows of a, since b knows no others yet
    assert rows(hr, f"{ns}.d") == {(1, 1)}
    hr.sql(f"DROP TABLE {ns}.a; CREATE TABLE {ns}.a (k BIGINT) USING iceberg; INSERT INTO {ns}.a VALUES (1), (2)")
    with pytest.raises(HeadraceError, match="HISTORY_EXPIRED") as caught:
        hr.refresh(f"{ns}.d", full=True)
    assert "in one call" in (caught.value.hint or "")
    hr.refresh()
    assert rows(hr, f"{ns}.d") == {(1, 2), (2, 2)}
    assert hr.verify(f"{ns}.d").ok


def test_what_cannot_agree_is_not_loaded(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT) USING iceberg;
    INSERT INTO {ns}.a VALUES (1);
    CREATE STREAM TABLE {ns}.b AS SELECT k FROM {ns}.a;
    INSERT INTO {ns}.a VALUES (2);
    CREATE STREAM TABLE {ns}.c AS SELECT k FROM {ns}.a
    """)
    create = f"""CREATE STREAM TABLE {ns}.d WITH (diamond_consistency = 'aligned')
        AS SELECT b.k FROM {ns}.b JOIN {ns}.c ON b.k = c.k"""
    with pytest.raises(HeadraceError, match="NOTHING_AGREES"):
        hr.sql(create)
    assert f"{ns}.d" not in [t.name for t in hr.status()]
    hr.refresh([f"{ns}.b", f"{ns}.c"])
    hr.sql(create)
    assert rows(hr, f"{ns}.d") == {(1,), (2,)}
