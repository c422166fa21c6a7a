"""A refresh that takes too long on a real Spark: cancelled with its jobs, nothing published, its slot free."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from kit.spark_jobs import running_now
from kit.waiting import running, until

from headrace.api.facade import Headrace
from headrace.events import Event, RetryPlanned

SLOW = """
CREATE TABLE {ns}.a (g INT, v INT) USING iceberg TBLPROPERTIES ('read.parquet.vectorization.batch-size' = '1');
CREATE TABLE {ns}.z (g INT, v INT) USING iceberg;
INSERT INTO {ns}.a VALUES (1, 1);
INSERT INTO {ns}.z VALUES (1, 1);
CREATE STREAM TABLE {ns}.slow SCHEDULE 'ON CHANGE' REFRESH MODE FULL WITH (timeout = '3 seconds')
    AS SELECT x.g, sum(x.v * y.v - w.v) AS total FROM {ns}.a x JOIN {ns}.a y ON x.g = y.g JOIN {ns}.a w ON w.g = y.g
    GROUP BY x.g;
CREATE STREAM TABLE {ns}.below SCHEDULE 'ON CHANGE' AS SELECT total FROM {ns}.slow;
CREATE STREAM TABLE {ns}.other SCHEDULE 'ON CHANGE' AS SELECT v FROM {ns}.z
"""


@pytest.fixture
def slow(hr: Headrace, ns: str) -> str:
    hr.sql(SLOW.format(ns=ns))
    time.sleep(1.1)  # what ON CHANGE keeps between two refreshes
    # 160,000,000,000 rows to add up. A task only notices that it is to stop between two batches of rows: of the usual
    # thousands, with four million partners each, one takes minutes.
    hr.sql(f"INSERT INTO {ns}.a SELECT id % 20, id % 3 FROM range(40000)")
    return ns


def test_it_is_cancelled_with_its_jobs_and_its_slot_is_free(hr: Headrace, slow: str) -> None:
    told: list[Event] = []
    unsubscribe = hr.events.subscribe(told.append)
    names = [f"{slow}.{name}" for name in ("slow", "below")]
    published = [t.version for t in hr.status(names)]
    hr.sql(f"INSERT INTO {slow}.z VALUES (2, 2)")
    begun = time.monotonic()
    summary = hr.run(once=True, max_concurrent=1)
    assert time.monotonic() - begun < 300
    unsubscribe()
    assert (summary.failed, [r.name for r in summary.results]) == (1, [f"{slow}.other"])
    assert [e.table for e in told if isinstance(e, RetryPlanned)] == [names[0]]
    assert hr.history(names[0], limit=1)[0].error_code in ("CANCELLED", "REFRESH_TIMEOUT")
    assert [t.version for t in hr.status(names)] == published
    assert [row.total for row in hr.spark.table(f"lake.{slow}.slow").collect()] == [0]
    until(lambda: running_now(hr) == (0, 0))  # Spark's status follows a moment later


def test_what_outlasts_the_grace_time_is_cancelled_with_its_jobs(hr: Headrace, slow: str) -> None:
    hr.sql(f"ALTER STREAM TABLE {slow}.slow SET PROPERTIES (timeout = '10 minutes')")
    with running(lambda stopping: hr.run(stopping=stopping, grace=dt.timedelta(0)), grace=300):
        until(lambda: running_now(hr).tasks)
    until(lambda: running_now(hr) == (0, 0))
