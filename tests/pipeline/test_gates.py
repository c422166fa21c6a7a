"""Gates on Spark: what is read at a gate is the table as it was, whatever happens to it meanwhile. And watermarks."""

from __future__ import annotations

import datetime as dt

import pytest

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.events import Event, Notice


def count(hr: Headrace, table: str) -> int:
    return int(hr.spark.table(f"lake.{table}").count())


def test_a_source_is_held_back_until_its_gate_opens(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT, v BIGINT) USING iceberg;
    CREATE TABLE {ns}.z (k BIGINT) USING iceberg;
    INSERT INTO {ns}.a VALUES (1, 10);
    INSERT INTO {ns}.z VALUES (1), (2);
    CREATE STREAM TABLE {ns}.b REFRESH MODE DIFFERENTIAL AS SELECT a.k, v FROM {ns}.a JOIN {ns}.z ON a.k = z.k;
    INSERT INTO {ns}.a VALUES (2, 20);
    CLOSE GATE ON {ns}.a;
    INSERT INTO {ns}.a VALUES (2, 21), (3, 30);
    UPDATE {ns}.a SET v = 22 WHERE v = 21;
    INSERT INTO {ns}.z VALUES (3)
    """)
    told = list[Event]()
    unsubscribe = hr.events.subscribe(told.append)
    hr.refresh(f"{ns}.b")  # the row before the gate, and all of z
    unsubscribe()
    assert f"Held back by closed gates: {ns}.a." in [e.message for e in told if isinstance(e, Notice)]
    assert count(hr, f"{ns}.b") == 2
    (info,) = hr.status([f"{ns}.b"])
    assert (info.behind, info.gated, info.lag) == ((), (f"{ns}.a",), 0.0)
    hr.sql(f"CREATE STREAM TABLE {ns}.late AS SELECT k FROM {ns}.a")
    assert count(hr, f"{ns}.late") == 2
    hr.refresh(f"{ns}.b", full=True)
    assert count(hr, f"{ns}.b") == 2
    hr.maintain([f"{ns}.b", f"{ns}.late"], older_than=dt.timedelta(0))  # keeps what the gate needs
    assert hr.verify(f"{ns}.b").ok
    hr.open_gate(f"{ns}.a")
    hr.refresh([f"{ns}.b", f"{ns}.late"])
    assert (count(hr, f"{ns}.b"), count(hr, f"{ns}.late")) == (4, 4)
    assert all(v.ok for v in hr.verify([f"{ns}.b", f"{ns}.late"]))


def test_a_state_at_the_gate_that_is_gone_is_told(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT) USING iceberg;
    INSERT INTO {ns}.a VALUES (1);
    CREATE STREAM TABLE {ns}.b AS SELECT k FROM {ns}.a;
    INSERT INTO {ns}.a VALUES (2)
    """)
    hr.close_gate(f"{ns}.a")
    hr.sql(f"DROP TABLE {ns}.a; CREATE TABLE {ns}.a (k BIGINT) USING iceberg; INSERT INTO {ns}.a VALUES (7)")
    with pytest.raises(HeadraceError, match="HISTORY_EXPIRED") as caught:
        hr.refresh(f"{ns}.b")
    assert f"headrace gate open {ns}.a" in (caught.value.hint or "")
    assert count(hr, f"{ns}.b") == 1
    hr.open_gate(f"{ns}.a")
    hr.refresh(f"{ns}.b")
    assert hr.verify(f"{ns}.b").ok


def test_what_waits_for_watermarks_is_left_out_of_a_refresh_of_everything(hr: Headrace, ns: str) -> None:
    hr.sql(f"""
    CREATE TABLE {ns}.a (k BIGINT) USING iceberg;
    CREATE TABLE {ns}.z (k BIGINT) USING iceberg;
    CREATE STREAM TABLE {ns}.b AS SELECT k FROM {ns}.a;
    CREATE STREAM TABLE {ns}.d AS SELECT b.k FROM {ns}.b JOIN {ns}.z ON b.k = z.k;
    CREATE WATERMARK GROUP {ns} ({ns}.a, {ns}.z) TOLERANCE '0 seconds';
    INSERT INTO {ns}.a VALUES (1);
    INSERT INTO {ns}.z VALUES (1)
    """)
    told = list[Event]()
    unsubscribe = hr.events.subscribe(told.append)
    hr.refresh()
    unsubscribe()
    assert (count(hr, f"{ns}.b"), count(hr, f"{ns}.d")) == (1, 0)
    assert any(f"{ns}.d waits for watermark group {ns}" in e.message for e in told if isinstance(e, Notice))
    with pytest.raises(HeadraceError, match="WATERMARKS_APART") as caught:
        hr.refresh([f"{ns}.b", f"{ns}.d"])
    assert caught.value.retryable
    for source in "az":
        hr.sql(f"ADVANCE WATERMARK OF {ns}.{source} TO '2026-03-01T06:00:00Z'")
    hr.refresh()
    assert count(hr, f"{ns}.d") == 1
    hr.drop_watermark_group(ns)
