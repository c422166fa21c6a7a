"""The command with a real Spark: one project and one Spark for all tests; every test has a namespace of its own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kit.long_tests import begin_with
from kit.sparks import SHORT_LIVED
from pyspark.sql import SparkSession

from headrace.cli.main import app
from headrace.config import load
from headrace.project.new_project import init_project
from headrace.spark.end_session import stop
from headrace.spark.session import open_session

Run = Callable[..., Result]

_numbers = itertools.count(1)

LONGEST = ("test_tutorials.py", "test_demo.py", "test_demo_postgres.py", "test_surroundings.py")
"""Files with long tests."""

SHORTEST = "test_serve.py"
"""Begun last: many short tests, which processes take from each other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin_with(LONGEST, items, SHORTEST)


class CommandsHere:
    """Runs commands in this process: each finds a new session of a Spark that runs, because starting one takes seconds.

    A Spark knows the catalogs of one project; a command of another project has it started anew.
    """

    def __init__(self) -> None:
        self._root: Path | None = None
        self._stop: Callable[[], None] = lambda: None

    def run(self, root: Path, args: list[str], stdin: str | None = None) -> Result:
        """Run a command as its own process would.

        Args:
            root: The project folder.
            args: The words after `headrace -p <root>`.
            stdin: What it reads.
        """
        self._begin_session(root)
        words = ["-p", str(root), *args]
        return CliRunner(env={"NO_COLOR": "1"}).invoke(app, words, input=stdin, prog_name="headrace")

    def stop(self) -> None:
        """Stop Spark."""
        self._stop()
        self._stop = lambda: None

    def _begin_session(self, root: Path) -> None:
        if root != self._root:
            self.stop()
            self._first = open_session(load(root))
            self._stop = lambda: stop(self._first, remote=False)
            self._root = root
        session = self._first.newSession()
        SparkSession._activeSession = session  # the one that a command finds
        session._jvm.SparkSession.setActiveSession(session._jsparkSession)


@pytest.fixture(scope="session")
def commands_here() -> Iterator[CommandsHere]:
    commands = CommandsHere()
    yield commands
    commands.stop()


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = init_project(tmp_path_factory.mktemp("cli") / "shop").root
    with (root / "headrace.toml").open("a") as file:
        file.write('"spark.sql.shuffle.partitions" = 2\n')
        file.write(f'"spark.driver.extraJavaOptions" = "{SHORT_LIVED}"\n')
    return root


@pytest.fixture
def run(project: Path, commands_here: CommandsHere) -> Run:
    def invoke(*args: object, stdin: str | None = None) -> Result:
        return commands_here.run(project, list(map(str, args)), stdin)

    return invoke


@pytest.fixture
def done(run: Run) -> Run:
    """Runs the command and insists that it succeeds."""

    def invoke(*args: object, stdin: str | None = None) -> Result:
        result = run(*args, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result

    return invoke


@pytest.fixture
def alone(done: Run) -> None:
    """Drops the stream tables of earlier tests, for a test that refreshes whatever the project has."""
    for table in json.loads(done("status", "--json").stdout):
        done("drop", table["name"], "--if-exists", "--cascade")


@pytest.fixture
def ns(done: Run) -> str:
    """A namespace with a table `orders` of three rows."""
    name = f"t{next(_numbers)}"
    done(
        "sql",
        f"CREATE NAMESPACE {name};"
        f"CREATE TABLE {name}.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg;"
        f"INSERT INTO {name}.orders VALUES (1, 'EU', 30.00), (2, 'EU', 50.00), (3, NULL, 5.25)",
    )
    return name
