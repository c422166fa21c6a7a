"""The command as a real process: exit statuses, streams, JSON, imports."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from fast.cli.conftest import Process, command, environment
from kit.child_process import killed_at_end
from kit.sigint import take_sigint
from kit.stored_project import with_revenue

HEAVY = ("pyspark", "sqlglot", "alembic", "prompt_toolkit", "pyiceberg", "pyarrow", "pydantic", "psycopg")


def test_version(process: Process) -> None:
    done = process("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("headrace 0.")


def test_outside_a_project(process: Process) -> None:
    done = process("status")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[PROJECT_NOT_FOUND]" in done.stderr
    assert "Hint: Run `headrace init <folder>`" in done.stderr


def test_errors_as_json_leave_stdout_empty(process: Process) -> None:
    done = process("status", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "PROJECT_NOT_FOUND"
    assert error["retryable"] is False


def test_wrong_usage(process: Process) -> None:
    done = process("status", "--what")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_project_is_made_once(process: Process, tmp_path: Path) -> None:
    assert process("init", "shop").returncode == 0
    again = process("init", "shop")
    assert again.returncode == 1
    assert "[PROJECT_EXISTS]" in again.stderr
    assert process("status", "-p", "shop", "--json").stdout == "[]\n"


def test_a_catalog_that_is_gone(process: Process, tmp_path: Path) -> None:
    """It is not made anew behind the user's back: an empty catalog beside a full warehouse would look like a loss."""
    assert process("init", "shop").returncode == 0
    catalog = tmp_path / "shop" / "headrace.db"
    catalog.unlink()
    done = process("status", "-p", "shop")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[CATALOG_UNREACHABLE]" in done.stderr
    assert "Traceback" not in done.stderr
    assert not catalog.exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[headrace", "CONFIG_INVALID"),
        ("[headrace]\nspeed = 9", "CONFIG_INVALID"),
        ("[wrong]\n", "CONFIG_INVALID"),
        ("[headrace]\nformat_version = 1", "CONFIG_INVALID"),
        ("[headrace]\ncatalog_url = 'mysql://x/y'", "CONFIG_INVALID"),
    ],
)
def test_settings_that_are_wrong(process: Process, project: Path, text: str, code: str) -> None:
    (project / "headrace.toml").write_text(text)
    done = process("status", "-p", project, "--json")
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == code


def test_a_catalog_that_is_no_database(process: Process, project: Path) -> None:
    for file in project.glob("headrace.db*"):
        file.unlink()
    (project / "headrace.db").write_text("this is no database, but long enough to be taken for one" * 100)
    done = process("status", "-p", project)
    assert done.returncode == 1
    assert "[CATALOG_CORRUPT]" in done.stderr
    assert "Traceback" not in done.stderr


IMPATIENT = """
import datetime
from headrace.catalog import Catalog
from headrace.cli.main import main
Catalog.open.__func__.__kwdefaults__["busy_timeout"] = datetime.timedelta(seconds=1)
main()
"""
"""The command, which waits for another writer for a second, not for thirty."""


def test_a_catalog_that_somebody_holds_locked(tmp_path: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("-p", project, *args), capture_output=True, text=True, env=environment(), check=False
        )

    with with_revenue(tmp_path / "shop") as stored:
        project = stored.root
    assert run("status").returncode == 0  # numbers the versions of sources that have moved
    with closing(sqlite3.connect(project / "headrace.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        words = ["-p", str(project), "alter", "shop.revenue", "--schedule", "1 h", "--json"]
        changing = subprocess.Popen(
            [sys.executable, "-c", IMPATIENT, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert run("status").returncode == 0  # who only reads does not wait
        stdout, stderr = changing.communicate(timeout=120)
    error = json.loads(stderr.splitlines()[-1])["error"]
    assert (changing.returncode, stdout, error["code"], error["retryable"]) == (1, "", "CATALOG_LOCKED", True)


def test_an_interrupt_says_that_nothing_was_published(project: Path) -> None:
    child = subprocess.Popen(
        command("-p", project, "sql"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=take_sigint,
    )
    with killed_at_end(child):
        _wait_until_it_reads_stdin(child.pid)
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (130, "")
    assert stderr == "Interrupted. Nothing of what was under way has been published.\n"


def _wait_until_it_reads_stdin(pid: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if "pipe_read" in Path(f"/proc/{pid}/wchan").read_text() or _reading(pid):
            return
        time.sleep(0.02)
    raise AssertionError("it never read stdin")


def _reading(pid: int) -> bool:
    """Whether the process is in read(0, …); what the kernel calls the place it waits at differs by version."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().split()[:2] == ["0", "0x0"]
    except (OSError, PermissionError):
        return False


def test_a_closed_pipe_is_no_defect(project: Path) -> None:
    child = subprocess.Popen(
        command("-p", project, "status"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == ""
    child.wait()
    child.stderr.close()


def test_a_status_needs_neither_algebra_nor_reader(project: Path) -> None:
    """They are a sixth of what a look at the catalog imports."""
    code = (
        "import sys\nfrom headrace.cli.main import app\n"
        f"try: app(['-p', {str(project)!r}, 'status'], prog_name='headrace')\n"
        "except SystemExit as end: print('\\n', end.code, *sorted(m for m in sys.modules if m.startswith('headrace.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status in ("0", "None")
    rooms = {module.split(".")[1] for module in modules}
    assert not rooms & {"ivm", "physical", "optimizer", "cost", "statements"}
    assert not {"headrace.algebra.relations", "headrace.sql.reader", "headrace.deploy.green_status"} & set(modules)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["status"], ["history"], ["graph"], ["refresh", "--help"]])
def test_looking_imports_nothing_heavy(project: Path, args: list[str]) -> None:
    code = (
        "import sys\nfrom headrace.cli.main import app\n"
        f"try: app({['-p', str(project), *args]!r}, prog_name='headrace')\n"
        "except SystemExit as end: print('\\n', end.code, *sorted(m for m in sys.modules if '.' not in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status in ("0", "None")
    assert not set(modules) & set(HEAVY)


def test_ending_looks_for_no_cycles(project: Path) -> None:
    code = (
        "import atexit, gc, sys\natexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        f"sys.argv = ['headrace', '-p', {str(project)!r}, 'status']\nfrom headrace.cli.start import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    assert done.stdout.splitlines()[-1] == "True"
