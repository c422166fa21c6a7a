"""Processes killed while they land a cluster, and workers with them: no transfer is lost, doubled or seen half."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from crash.conftest import QUICK
from crash.test_landing_killed import play
from kit.citus_cluster import Cluster
from kit.surviving_spark import SurvivingSpark, surviving_spark

from headrace.project.new_project import init_project

POINTS = (1, 3, 4, 6)


@pytest.fixture
def surviving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SurvivingSpark]:
    monkeypatch.setenv("HEADRACE_SPARK_OPTIONS", QUICK)
    init_project(tmp_path / "spark")
    with surviving_spark(tmp_path / "spark") as spark:
        yield spark


def test_killed_between_reading_and_acknowledging(
    tmp_path: Path, surviving: SurvivingSpark, cluster: Cluster, db: psycopg.Connection[Any]
) -> None:
    init_project(tmp_path / "p")
    for number, point in enumerate((*POINTS, -1)):
        code, output = play(surviving, tmp_path / "p", number, point, cluster.url, "citus")
        if number:
            assert "before (10000, 10000)" in output, output
            assert "recovered [True, True] (10000, 10000) True" in output, output
        assert code == (-signal.SIGKILL if point >= 0 else 0), output
        if number in (1, 2):
            cluster.workers[number - 1].restart()
    assert "survived [True, True]" in output
    for node in cluster.nodes:
        with node.connect() as own:
            own.execute("SET citus.enable_ddl_propagation = off")
            own.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'headrace%'"
            )
            for (name,) in own.execute("SELECT pubname FROM pg_publication WHERE pubname LIKE 'headrace%'").fetchall():
                own.execute(f"DROP PUBLICATION {name}")
