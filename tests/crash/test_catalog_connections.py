"""Projects that are closed leave no connection to a PostgreSQL catalog behind, though the JVM stays."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from catalog_kit.tcp import tcp_url
from kit.surviving_spark import SurvivingSpark

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("opener.py")


def test_connections_end_with_the_project(
    tmp_path: Path, surviving: SurvivingSpark, request: pytest.FixtureRequest
) -> None:
    init_project(tmp_path / "p", catalog_url=tcp_url(request))
    command = [sys.executable, str(SCRIPT), str(tmp_path / "p")]
    done = subprocess.run(command, env=surviving.environment(), capture_output=True, text=True, check=False)
    own, served = (re.findall(rf"^{kind} (.*)$", done.stdout, re.MULTILINE) for kind in ("own", "served"))
    assert own == ["[0, 0]"], done.stdout + done.stderr
    assert served == ["[0, 0]"], done.stdout + done.stderr
