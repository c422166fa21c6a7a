"""Where neither PySpark nor Py4J is installed: everything that needs no Spark works, the rest names the extra."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fast.cli.conftest import environment

BLOCKING = """
import sys
from importlib.machinery import PathFinder

class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {packages} else super().find_spec(name, path, target)

sys.meta_path[:] = [Others if finder is PathFinder else finder for finder in sys.meta_path]
"""


def run(code: str, folder: Path, packages: tuple[str, ...] = ("pyspark", "py4j")) -> "subprocess.CompletedProcess[str]":
    program = BLOCKING.format(packages=set(packages)) + code
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, env=environment(), check=False
    )


def headrace(
    folder: Path, *args: str, without: tuple[str, ...] = ("pyspark", "py4j"), **variables: str
) -> "subprocess.CompletedProcess[str]":
    told = f"import os; os.environ.update({variables!r})\nsys.argv = ['headrace', *{args!r}]\n"
    return run(f"{told}from headrace.cli.main import main; main()", folder, without)


@pytest.mark.parametrize(
    "args", [("--help",), ("--version",), ("sql", "--help"), ("status",), ("history",), ("graph",), ("show-create",)]
)
def test_what_needs_no_spark_works(project: Path, args: tuple[str, ...]) -> None:
    done = headrace(project, *args)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_imported_and_a_project_opened(project: Path) -> None:
    done = run(
        "import headrace\nwith headrace.open('.') as hr: print(hr.status())\nimport headrace.spark.runner", project
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "()\n", "")


def test_the_doctor_names_the_extra(tmp_path: Path) -> None:
    checks = {check["name"]: check for check in json.loads(headrace(tmp_path, "doctor", "--json").stdout)}
    assert checks["PySpark"]["outcome"] == "fail"
    assert checks["PySpark"]["remedy"] == "pip install 'headrace[local]'"


CONNECT = {"HEADRACE_SPARK_REMOTE": "sc://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("without", "variables", "finding", "remedy"),
    [
        (("pyspark", "py4j"), CONNECT, "not installed", "'headrace[connect]' 'pyspark-client>=4.1,<4.2'"),
        (
            ("grpc_status", "py4j"),
            CONNECT,
            "what Spark Connect needs beside it: ",
            "'headrace[connect]'",
        ),
        (("py4j",), {}, "without what a Spark of its own needs beside it: py4j.", "'headrace[local]'"),
    ],
)
def test_the_doctor_names_the_extra_that_the_settings_need(
    project: Path, without: tuple[str, ...], variables: dict[str, str], finding: str, remedy: str
) -> None:
    done = headrace(project, "doctor", "--json", without=without, **variables)
    found = next(check for check in json.loads(done.stdout) if check["name"] == "PySpark")
    assert (found["outcome"], finding in found["finding"]) == ("fail", True), found
    assert [name for name in without if name == "grpc_status" and name not in found["finding"]] == []
    assert found["remedy"] == f"pip install {remedy}"


def test_what_needs_spark_names_the_extra(project: Path) -> None:
    done = headrace(project, "sql", "SELECT 1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[PACKAGE_MISSING]" in done.stderr
    assert "Hint: pip install 'headrace[local]'\n" in done.stderr


@pytest.mark.parametrize("act", [(), ("postgres",), ("deploy",)])
def test_the_demonstration_names_its_own_extra_and_makes_no_folder(tmp_path: Path, act: tuple[str, ...]) -> None:
    for without in (("pyspark", "py4j"), ("psycopg",))[: 2 if act == ("postgres",) else 1]:
        done = headrace(tmp_path, "demo", *act, without=without)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"headrace demo {' '.join(act)}".rstrip() + " needs packages" in done.stderr
        assert "Hint: pip install 'headrace[demo]'\n" in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_server_is_started_to_keep_nothing_warm(project: Path) -> None:
    told = "import os; del os.environ['HEADRACE_NO_SERVE']\nsys.argv = ['headrace', 'validate', 'SELECT 1 AS one']\n"
    done = run(f"{told}from headrace.cli.start import main; main()", project)
    assert (done.returncode, "server" in done.stderr) == (1, False)
    assert "[PACKAGE_MISSING]" in done.stderr
    assert not (project / ".headrace" / "serve").exists()


def test_connect_names_the_extra_and_the_client(project: Path) -> None:
    done = headrace(project, "sql", "SELECT 1", HEADRACE_SPARK_REMOTE="sc://127.0.0.1:1")
    assert done.returncode == 1
    assert "[PACKAGE_MISSING]" in done.stderr
    assert "Hint: pip install 'headrace[connect]' 'pyspark-client>=4.1,<4.2'\n" in done.stderr


def test_pyspark_alone_is_enough_for_connect(project: Path) -> None:
    """pyspark-client comes without Py4J."""
    done = run("import headrace.spark.runner, headrace.spark.session", project, ("py4j",))
    assert (done.returncode, done.stderr) == (0, "")
