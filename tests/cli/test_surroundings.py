"""What is missing around the command: Java, the network. Real processes, because a JVM starts only once in one."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from fast.cli.conftest import command, environment

from headrace.project import init_project

UNREACHABLE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><ibiblio name="nowhere" m2compatible="true" root="http://127.0.0.1:1/"/></resolvers>
</ivysettings>"""


@pytest.fixture
def own_project(tmp_path: Path) -> Path:
    return init_project(tmp_path / "shop").root


def run(project: Path, *args: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    words = command("-p", project, *args)
    return subprocess.run(words, capture_output=True, text=True, env=environment() | variables, check=False)


def test_no_java(own_project: Path) -> None:
    done = run(own_project, "sql", "SELECT 1", JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[JAVA_MISSING]" in done.stderr
    assert "Hint: Install" in done.stderr


def test_no_network_for_the_jars(own_project: Path, tmp_path: Path) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(UNREACHABLE)
    jars = tmp_path / "jars"
    done = run(
        own_project, "sql", "SELECT 1", "--json", HEADRACE_JARS_DIR=str(jars), HEADRACE_IVY_SETTINGS=str(settings)
    )
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.returncode, done.stdout, error["code"]) == (1, "", "JARS_UNAVAILABLE")
    assert str(jars) in error["hint"]
    assert error["retryable"] is True


def test_an_interrupted_query(own_project: Path) -> None:
    child = subprocess.Popen(
        command("-p", own_project, "sql", "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE rand() < 2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with child:
        assert child.stderr is not None
        assert "jdk.incubator.vector" in child.stderr.readline()  # the JVM speaks: Spark starts, or runs the query
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=120)
    assert (child.returncode, stdout) == (130, "")
    assert stderr.endswith("Interrupted. Nothing of what was under way has been published.\n")
    assert "Traceback" not in stderr
