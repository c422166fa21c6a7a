"""Suites of the bench over TPC-H's 22 queries, with a few rows: they run, and what they measure is equal and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.sparks import FOR_COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_suites_run_over_few_rows(tmp_path: Path) -> None:
    suites = ["growth", "queries", "young"]
    few = "--cases 1 --rounds 1 --warm-up 1 --scale 0.01 --scales 0.01 0.02 --shares 0.001 --lines 60"
    command = [sys.executable, "-m", "bench", *suites, *few.split(), "--results", str(tmp_path)]
    environment = {**os.environ, **FOR_COMMANDS}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "latest.json").read_text())["figures"]
    assert {figure["suite"] for figure in figures} == set(suites)
    assert all(figure["value"] > 0 for figure in figures)
    of_one = {figure["case"].rsplit(": ")[-1] for figure in figures if figure["case"].startswith("q01, 0.1% changed: ")}
    assert of_one == {"FULL / AUTO", "plain Spark / AUTO"}
    for measure, points in json.loads((tmp_path / "growth.json").read_text()).items():
        assert [point["scale"] for point in points] == [0.01, 0.02]
        assert (tmp_path / f"growth-{measure}.svg").read_text().startswith("<svg")
