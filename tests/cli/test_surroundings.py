"""What is missing around the command: Java, the network. Real processes, because a JVM starts only once in one."""

import json
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from cli.conftest import CommandsHere
from fast.cli.conftest import command, environment
from kit.child_process import killed_at_end
from kit.sparks import SHORT_LIVED_OPTIONS, as_text
from kit.waiting import until

from headrace.project.new_project import init_project

UNREACHABLE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><ibiblio name="nowhere" m2compatible="true" root="http://127.0.0.1:1/"/></resolvers>
</ivysettings>"""


@pytest.fixture
def own_project(tmp_path: Path) -> Path:
    return init_project(tmp_path / "shop").root


def run(project: Path, *args: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    words = command("-p", project, *args)
    return subprocess.run(words, capture_output=True, text=True, env=short_lived() | variables, check=False)


def short_lived() -> dict[str, str]:
    return environment() | {"HEADRACE_SPARK_OPTIONS": as_text(SHORT_LIVED_OPTIONS)}


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


def test_no_room_for_what_is_written(tmp_path: Path, commands_here: CommandsHere) -> None:
    """A stream table is behind by many rows, and files may not grow as large as these take."""
    project = init_project(tmp_path / "shop").root
    with (project / "headrace.toml").open("a") as file:
        file.writelines(f'"{name}" = "{value}"\n' for name, value in SHORT_LIVED_OPTIONS.items())
    made = commands_here.run(
        project,
        [
            "sql",
            "CREATE NAMESPACE shop; CREATE TABLE shop.t USING iceberg AS SELECT id FROM range(9);"
            "CREATE STREAM TABLE shop.s AS SELECT id, sha2(CAST(id AS STRING), 256) AS h FROM shop.t;"
            "INSERT INTO shop.t SELECT id FROM range(100000)",
        ],
    )
    assert made.exit_code == 0, made.output
    words = command("-p", project, "refresh", "shop.s", "--json")
    room = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))  # noqa: E731
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False, preexec_fn=room)
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.returncode, done.stdout, error["code"], error["retryable"]) == (1, "", "DISK_FULL", True)
    assert "Traceback" not in done.stderr
    assert "DISK_FULL" in commands_here.run(project, ["status", "--json"]).stdout
    for verb in ("refresh", "verify"):
        again = commands_here.run(project, [verb, "shop.s"])
        assert again.exit_code == 0, again.output


def test_an_interrupted_query(own_project: Path) -> None:
    child = subprocess.Popen(
        command("-p", own_project, "sql", "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE rand() < 2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=short_lived(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with killed_at_end(child):
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        until(children.read_text)  # Spark starts, or runs the query
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=120)
    assert (child.returncode, stdout) == (130, "")
    assert stderr.endswith("Interrupted. Nothing of what was under way has been published.\n")
    assert "Traceback" not in stderr
