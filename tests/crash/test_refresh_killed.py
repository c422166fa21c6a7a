"""Processes killed at the boundaries of a refresh's stages; nothing is lost, doubled or half visible afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from catalog_kit.tcp import tcp_url
from kit.long_tests import LONG
from kit.surviving_spark import SurvivingSpark

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("refresher.py")
EVERYWHERE = tuple(range(21)) if LONG else (6, 12)
SOME = EVERYWHERE if LONG else (5, 16)


def play(spark: SurvivingSpark, project: Path, number: int, kill_point: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(project), str(number), str(kill_point)],
        env=spark.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_killed_at_stage_boundaries(
    database: str, tmp_path: Path, surviving: SurvivingSpark, request: pytest.FixtureRequest
) -> None:
    url = None if database == "sqlite" else tcp_url(request)
    init_project(tmp_path / "p", catalog_url=url)
    points = EVERYWHERE if database == "sqlite" else SOME
    for number, point in enumerate((*points, -1)):
        code, output = play(surviving, tmp_path / "p", number, point)
        if number:
            assert "before [True, True]" in output, output
            assert "recovered [True, True] [(), ()]" in output, output
            assert "log True" in output, output
        assert code == (-signal.SIGKILL if point >= 0 else 0), output
    assert "survived [True, True]" in output, output
