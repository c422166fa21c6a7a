"""The command with a real Spark: one project and one JVM for all tests; every test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kit.sparks import SHORT_LIVED

from headrace.cli.main import app
from headrace.project.new_project import init_project

Run = Callable[..., Result]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = init_project(tmp_path_factory.mktemp("cli") / "shop").root
    with (root / "headrace.toml").open("a") as file:
        file.write('"spark.sql.shuffle.partitions" = 2\n')
        file.write(f'"spark.driver.extraJavaOptions" = "{SHORT_LIVED}"\n')
    return root


@pytest.fixture
def run(project: Path) -> Run:
    def invoke(*args: object, stdin: str | None = None) -> Result:
        words = ["-p", str(project), *map(str, args)]
        return CliRunner().invoke(app, words, input=stdin, prog_name="headrace")

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
