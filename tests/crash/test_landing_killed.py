"""Processes killed while they land a database: no transfer is lost, doubled or seen half."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.logical import logical_server
from kit.long_tests import LONG
from kit.surviving_spark import SurvivingSpark

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("lander.py")
POINTS = tuple(range(10)) if LONG else (1, 6)
OF_TWO = POINTS if LONG else (4,)
"""Shards are landed by the same steps: each of the points is tried once."""


def play(spark: SurvivingSpark, project: Path, number: int, kill_point: int, url: str, way: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(project), str(number), str(kill_point), url, way],
        env=spark.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("way", ["wal", pytest.param("trigger", marks=pytest.mark.long)])
def test_killed_between_reading_and_acknowledging(tmp_path: Path, surviving: SurvivingSpark, way: str) -> None:
    init_project(tmp_path / "p")
    with logical_server() as server:
        url = server.fresh()
        for number, point in enumerate((*POINTS, -1)):
            code, output = play(surviving, tmp_path / "p", number, point, url, way)
            if number:
                assert "before (10000, 10000)" in output, output
                assert "recovered [True, True] (10000, 10000) True" in output, output
            assert code == (-signal.SIGKILL if point >= 0 else 0), output
            if number == 0:
                server.restart("immediate")
        assert "survived [True, True]" in output


def test_killed_while_two_shards_are_landed(tmp_path: Path, surviving: SurvivingSpark) -> None:
    """One shard from the log, one by triggers; the servers are killed, too."""
    init_project(tmp_path / "p")
    with logical_server() as first, logical_server() as second:
        urls = f"{first.fresh()} {second.fresh()}"
        for number, point in enumerate((*OF_TWO, -1)):
            code, output = play(surviving, tmp_path / "p", number, point, urls, "wal")
            if number:
                assert "before (10000, 10000)" in output, output
                assert "recovered [True, True] (10000, 10000) True" in output, output
            assert code == (-signal.SIGKILL if point >= 0 else 0), output
            for server in (first, second) if point >= 0 else ():
                server.restart("immediate")
        assert "survived [True, True] published {10000}" in output
