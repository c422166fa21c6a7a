from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_kit.ready import ready_project
from click.testing import CliRunner, Result

from headrace.cli.main import app

Run = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]

WIDE = "300"
"""No terminal breaks lines within the words that tests look for."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return ready_project(tmp_path / "shop").root


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_PROJECT", raising=False)
    monkeypatch.setenv("COLUMNS", WIDE)

    def invoke(*args: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="headrace")

    return invoke


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Runs the command as a process of its own, in an empty folder."""

    def start(*args: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*args), input=stdin, capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False
        )

    return start


def command(*args: object) -> list[str]:
    return [sys.executable, "-c", "from headrace.cli.main import main; main()", *map(str, args)]


def environment() -> dict[str, str]:
    source = Path(__file__).parents[3] / "src"
    kept = {name: value for name, value in os.environ.items() if name != "HEADRACE_PROJECT"}
    return kept | {"PYTHONPATH": str(source), "COLUMNS": WIDE}
