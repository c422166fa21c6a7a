"""Processes killed in the middle of a promotion, or of what takes it back: the old whole, or the new whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("deployer.py")
LONG = bool(os.environ.get("HEADRACE_TEST_LONG"))
PLACES = tuple(map(str, range(24))) if LONG else ("3", "9")
"""What is exchanged is written table by table, each in four events or so."""


def test_killed_while_generations_are_exchanged(tmp_path: Path) -> None:
    init_project(tmp_path / "p")
    for number, place in enumerate((*PLACES, "nowhere", "nowhere")):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(tmp_path / "p"), str(number), place],
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr[-2000:]
        assert "before True" in output, output
        assert "recovered True ()" in output, output
        assert "FULL" not in output.partition("recovered")[2].partition("event")[0], output
        if place == "nowhere" or "survived" in output:
            assert "survived 2 True" in output, output
        else:
            assert done.returncode == -signal.SIGKILL, output
