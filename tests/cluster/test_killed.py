"""Executors, a worker and a driver killed in the middle of a refresh: it is computed again, and nothing is lost."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit.cluster_project import environment
from kit.spark_cluster import SparkCluster

from headrace.api.facade import Headrace
from headrace.errors import EnvironmentFault
from headrace.events import Event, Notice, StageStarted
from headrace.refresh.groups.lost_rows import ATTEMPTS
from headrace.results.refresh_results import Mode

MANY = 25_000
"""Rows that a step may have before they are no longer held by the driver, and some more."""


@pytest.fixture
def groups(hr: Headrace, ns: str) -> str:
    """A stream table of which a change has many rows, so that they are kept on executors."""
    name = f"{ns}.groups"
    hr.sql(f"CREATE TABLE lake.{ns}.many (id BIGINT, v BIGINT) USING iceberg")
    hr.create_stream_table(name, f"SELECT id, sum(v) AS total FROM {ns}.many GROUP BY id", refresh_mode="DIFFERENTIAL")
    grow(hr, ns)
    hr.refresh(name)
    return name


def grow(hr: Headrace, ns: str) -> None:
    hr.sql(f"INSERT INTO lake.{ns}.many SELECT id, 1 FROM range({MANY})")


@contextmanager
def when_written(hr: Headrace, table: str, do: Callable[[], object], times: int = 1) -> Iterator[list[str]]:
    """Do something when rows of a table that were computed are about to be written; yields the notices meanwhile."""
    notices, done = list[str](), list[object]()

    def heard(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.message)
        if isinstance(event, StageStarted) and event.stage.endswith(f" staging.{table}") and len(done) < times:
            done.append(do())

    leave = hr.events.subscribe(heard)
    try:
        yield notices
    finally:
        leave()
    assert len(done) == times


def total(hr: Headrace, table: str) -> int:
    found: int = hr.sql(f"SELECT sum(total) FROM lake.{table}").first()[0]
    return found


def test_a_refresh_that_loses_its_rows_with_executors_is_computed_again_but_not_for_ever(
    hr: Headrace, ns: str, groups: str, cluster: SparkCluster
) -> None:
    grow(hr, ns)
    before = hr.status([groups])[0].version
    with (
        when_written(hr, groups, cluster.kill_executors, times=ATTEMPTS),
        pytest.raises(EnvironmentFault, match="EXECUTOR_LOST") as caught,
    ):
        hr.refresh(groups)
    assert caught.value.retryable
    assert caught.value.hint
    assert hr.status([groups])[0].version == before
    assert total(hr, groups) == MANY
    with when_written(hr, groups, cluster.kill_executors) as notices:
        assert hr.refresh(groups).mode is Mode.DIFFERENTIAL
    assert [n for n in notices if f"Computing {groups} again" in n]
    assert hr.verify(groups).ok
    assert total(hr, groups) == 2 * MANY


def test_a_worker_goes_with_all_that_it_has(hr: Headrace, ns: str, groups: str, cluster: SparkCluster) -> None:
    grow(hr, ns)
    with when_written(hr, groups, lambda: cluster.kill_worker(1)):
        hr.refresh(groups)
    assert hr.verify(groups).ok
    assert total(hr, groups) == 2 * MANY
    cluster.start_worker(1)


def test_a_driver_that_is_killed_loses_nothing_that_was_published(
    hr: Headrace, ns: str, groups: str, folder: Path
) -> None:
    grow(hr, ns)
    before = hr.status([groups])[0].version
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_driver.py")), str(folder), groups, "overwrite"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr[-2000:]
    assert "dies at" in done.stdout
    assert hr.status([groups])[0].version == before
    assert total(hr, groups) == MANY
    hr.refresh(groups, wait=dt.timedelta(minutes=3))  # until the lease of the dead one has expired
    assert hr.verify(groups).ok
    assert total(hr, groups) == 2 * MANY
