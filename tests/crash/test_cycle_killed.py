"""Processes killed in the middle of the refresh of a cycle: its members are published together, or none is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.long_tests import LONG
from kit.surviving_spark import SurvivingSpark

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("cycler.py")
PLACES = ("round 1", "round 3", *(f"after {n}" for n in range(12))) if LONG else ("round 3", "after 5")
"""After the last round the members are written one after the other, the first one in four events; then both are
published."""

SOUND = "[True, True, True]"


def test_killed_between_rounds_and_writes(
    tmp_path: Path, surviving: SurvivingSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_ALLOW_CYCLES", "true")
    init_project(tmp_path / "p")
    for number, place in enumerate((*PLACES, "nowhere")):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(tmp_path / "p"), str(number), place],
            env=surviving.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr[-2000:]
        if number:
            assert f"before {SOUND}" in output, output
            assert f"recovered {SOUND} [(), (), ()] ()" in output, output
        assert done.returncode == (0 if place == "nowhere" else -signal.SIGKILL), output
