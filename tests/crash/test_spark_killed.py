"""The JVM is killed while schedules run: it is started again in the same process, and nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit.sparks import SHORT_LIVED_OPTIONS
from kit.waiting import running, until

import headrace
from headrace.api.facade import Headrace
from headrace.config import default_settings
from headrace.errors import EnvironmentFault
from headrace.events import Event, Notice, RetryPlanned, StageStarted, Suspended


def kill_spark() -> None:
    from pyspark import SparkContext

    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)  # type: ignore[union-attr]


def kill_spark_while_asked(hr: Headrace) -> None:
    """What it was asked lies unread in its socket, so that the connection is reset, not closed."""
    from pyspark import SparkContext

    process = SparkContext._gateway.proc.pid  # type: ignore[union-attr]
    os.kill(process, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(hr.sql, "SELECT 2")
        time.sleep(0.5)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
            asked.result()


def scratch_folder(hr: Headrace) -> Path:
    return Path(str(hr.spark._jvm.java.lang.System.getProperty("java.io.tmpdir")))  # type: ignore[union-attr]


def settled(hr: Headrace) -> bool:
    return all(info.status == "ACTIVE" and not info.behind for info in hr.status())


def test_spark_is_started_again(tmp_path: Path) -> None:
    settings = replace(default_settings(tmp_path), spark_master="local[2]", spark_options=SHORT_LIVED_OPTIONS)
    told: list[Event] = []
    with headrace.open(settings) as hr:
        hr.events.subscribe(told.append)
        hr.sql("CREATE NAMESPACE lake.k; CREATE TABLE lake.k.a (id INT, v INT) USING iceberg")
        hr.sql("INSERT INTO lake.k.a VALUES (1, 1), (2, 2)")
        hr.create_stream_table("k.b", "SELECT v, count(*) AS n FROM k.a GROUP BY v", schedule="ON CHANGE")
        hr.create_stream_table("k.c", "SELECT sum(n) AS n FROM k.b", schedule="ON CHANGE")
        first, scratch = hr.spark, scratch_folder(hr)
        assert any(scratch.glob("blockmgr-*"))
        with running(lambda stopping: hr.run(stopping=stopping)):
            told.clear()  # of creating them
            hr.sql("INSERT INTO lake.k.a VALUES (3, 3)")
            until(lambda: any(isinstance(e, StageStarted) for e in told))
            kill_spark()
            until(lambda: any(isinstance(e, Notice) and "started again" in e.message for e in told))
            until(lambda: settled(hr))
            assert hr.spark is not first
            assert scratch_folder(hr) != scratch
            until(lambda: not scratch.exists())
            hr.sql("INSERT INTO lake.k.a VALUES (4, 4)")
            until(lambda: hr.spark.table("lake.k.c").collect()[0].n == 4)
        assert any(isinstance(e, RetryPlanned) for e in told)
        assert not any(isinstance(e, Suspended) for e in told)
        assert all(result.ok for result in hr.verify())


def test_a_project_is_opened_again_after_its_spark_has_died(tmp_path: Path) -> None:
    """Each time in another way; whoever opens it after one death is there for the next."""
    settings = replace(default_settings(tmp_path), spark_master="local[2]", spark_options=SHORT_LIVED_OPTIONS)
    ends: tuple[Callable[[Headrace], None], ...] = (
        lambda _: kill_spark(),
        kill_spark_while_asked,
        lambda hr: hr.spark.stop(),
        lambda _: None,
    )
    for end in ends:
        with headrace.open(settings) as hr:
            assert hr.sql("SELECT 1").collect()
            end(hr)
