"""Processes killed while they create, promote, take back or cancel a deployment, or at it at once: old or new, whole.

With HEADRACE_TEST_LONG at every event and every commit of each step, a second promotion and the end included.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from catalog_kit.tcp import tcp_url
from kit.long_tests import LONG
from kit.surviving_spark import SurvivingSpark, with_kit

from headrace.project.new_project import init_project

SCRIPT = Path(__file__).with_name("deployer.py")
STEPS = ("create", "promote", "rollback", "promote", "cancel") if LONG else ("create", "promote", "rollback")
APART = 1 if LONG else 40
"""How many points lie between one that is tried and the next."""

FIRST = APART // 2


def play(spark: SurvivingSpark, project: Path, point: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(project), str(point), STEPS[-1]],
        env=spark.environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_killed_at_any_step_of_a_deployment(
    database: str, tmp_path: Path, surviving: SurvivingSpark, request: pytest.FixtureRequest
) -> None:
    init_project(tmp_path / "p", catalog_url=None if database == "sqlite" else tcp_url(request))
    point, begun, kills, survived = FIRST, list[str](), 0, False
    while not (survived and len(begun) == len(STEPS)):
        code, output = play(surviving, tmp_path / "p", point)
        assert not begun or "before True" in output, output
        assert "recovered True [] " in output, output
        assert "FULL" not in output.partition("recovered")[2].partition("begin")[0], output
        found, survived = re.search(r"begin (\w+)", output), "survived True []" in output
        assert found, output
        assert survived or code == -signal.SIGKILL, output
        kills += not survived
        new = found[1] not in begun[-1:]
        begun += [found[1]] if new else []
        point = FIRST if survived or (new and point != FIRST) else point + APART
    assert tuple(begun) == STEPS
    assert kills >= len(STEPS) / 2


def test_two_processes_promote_at_once(tmp_path: Path, surviving: SurvivingSpark) -> None:
    init_project(tmp_path / "p")
    script = str(SCRIPT.with_name("promoter.py"))
    processes = [
        subprocess.Popen(
            [sys.executable, script, str(tmp_path / "p"), str(tmp_path), number],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, environment in (("0", surviving.environment()), ("1", with_kit()))  # each has a Spark
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    answers = sorted(re.findall(r"^answer (\w+)", "".join(outputs), re.MULTILINE))
    assert len(answers) == 2, outputs
    assert answers[1] == "done", outputs
    assert answers[0] in ("ALREADY_PROMOTED", "DEPLOYMENT_CHANGED", "LEASE_HELD"), outputs
    assert "whole True [] " in outputs[0], outputs
    assert "FULL" not in outputs[0].partition("whole")[2], outputs
