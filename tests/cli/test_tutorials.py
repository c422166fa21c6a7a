"""What the tutorials say is done as it is written, and prints what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.sparks import FOR_COMMANDS
from kit.tutorial import COMMAND, TUTORIALS, Typist

ROOT = Path(__file__).parents[2]

ENVIRONMENT = dict(os.environ)
"""As it was before this process started a Spark, which sets variables of its own."""


@pytest.fixture
def typist(tmp_path: Path) -> Typist:
    """Somebody in an empty folder, whose `headrace` is that of this tree."""
    commands = tmp_path / "bin"
    commands.mkdir()
    script = commands / "headrace"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -c "{COMMAND}" "$@"\n')
    script.chmod(0o755)
    kept = {k: v for k, v in ENVIRONMENT.items() if k not in ("HEADRACE_NO_SERVE", "HEADRACE_PROJECT")}
    path = f"{commands}{os.pathsep}{kept['PATH']}"
    folder = tmp_path / "reader"
    folder.mkdir()
    return Typist(folder, kept | FOR_COMMANDS | {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"})


LATER = ("docs/from-spark-sql.md",)
"""Left to `make test-long`: the other two have its commands, and its statements are those of tests/pipeline."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] if page in LATER else []) for page in TUTORIALS]
)
def test_a_tutorial_can_be_followed_as_it_is_written(typist: Typist, page: str) -> None:
    try:
        assert typist.follow(ROOT / page) > 5
    finally:
        subprocess.run(["headrace", "serve", "--stop"], cwd=typist.folder, env=typist.environment, check=False)
