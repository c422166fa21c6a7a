"""What is missing around the command: Java, the network. Real processes, because a JVM starts only once in one."""

import json
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
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


IMPATIENT = """
import datetime
from headrace.catalog import Catalog
from headrace.cli.main import main
Catalog.open.__func__.__kwdefaults__["busy_timeout"] = datetime.timedelta(seconds=1)
main()
"""
"""The command, which waits for another writer for a second, not for thirty."""


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


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose stream table `shop.s` is behind by many rows."""
    project = init_project(tmp_path_factory.mktemp("behind") / "shop").root
    made = run(
        project,
        "sql",
        "CREATE NAMESPACE shop; CREATE TABLE shop.t USING iceberg AS SELECT id FROM range(9);"
        "CREATE STREAM TABLE shop.s AS SELECT id, sha2(CAST(id AS STRING), 256) AS h FROM shop.t;"
        "INSERT INTO shop.t SELECT id FROM range(100000)",
    )
    assert made.returncode == 0, made.stderr
    return project


def test_no_room_for_what_is_written(behind: Path, commands_here: CommandsHere) -> None:
    words = command("-p", behind, "refresh", "shop.s", "--json")
    room = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))  # noqa: E731
    done = subprocess.run(words, capture_output=True, text=True, env=short_lived(), check=False, preexec_fn=room)
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.returncode, done.stdout, error["code"], error["retryable"]) == (1, "", "DISK_FULL", True)
    assert "Traceback" not in done.stderr
    status = json.loads(run(behind, "status", "--json").stdout)
    assert "DISK_FULL" in json.dumps(status)
    for verb in ("refresh", "verify"):
        again = commands_here.run(behind, [verb, "shop.s"])
        assert again.exit_code == 0, again.output


def test_a_catalog_that_somebody_holds_locked(behind: Path) -> None:
    assert run(behind, "status").returncode == 0  # numbers the versions of sources that have moved
    with closing(sqlite3.connect(behind / "headrace.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        words = [sys.executable, "-c", IMPATIENT, "-p", str(behind), "alter", "shop.s", "--schedule", "1 h", "--json"]
        changing = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        assert run(behind, "status").returncode == 0  # who only reads does not wait
        stdout, stderr = changing.communicate(timeout=120)
    error = json.loads(stderr.splitlines()[-1])["error"]
    assert (changing.returncode, stdout, error["code"], error["retryable"]) == (1, "", "CATALOG_LOCKED", True)


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
