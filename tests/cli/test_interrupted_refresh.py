"""Ctrl-C while several stream tables are refreshed: all of them end, nothing is published, and Spark stays usable.

Processes of their own: each starts its Spark in a thread that refreshes, not in the one that gets the signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.child_process import killed_at_end
from kit.sigint import take_sigint
from kit.sparks import SHORT_LIVED

from headrace.project.new_project import init_project
from headrace.serve.caller import address, wire

COMMAND = "from headrace.cli.start import main; main()"

SLOW = "SELECT count(*) AS n FROM shop.t a CROSS JOIN shop.t b CROSS JOIN shop.t c WHERE a.id + b.id + c.id < {}"
"""Takes hours."""

BY_HAND = """
import os, signal, sys, time, headrace

def tell(event):  # from two threads at once: only a line written whole stays one
    os.write(1, f"{type(event).__name__} {getattr(event, 'table', '')}\\n".encode())

with headrace.open(sys.argv[1]) as hr:
    hr.events.subscribe(tell)
    try:
        hr.refresh(["shop.one", "shop.two"])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(hr.spark.sql("SELECT 40 + 2").first()[0], flush=True)
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # which breaks a connection to Spark
    tracker, end = hr.spark.sparkContext.statusTracker(), time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < end:  # Spark ends what it cancels a moment later
        time.sleep(0.1)
    print(len(tracker.getActiveJobsIds()), "jobs run", flush=True)
"""

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "HEADRACE_NO_SERVE"}
"""As it was before this process started a Spark, which sets variables of its own."""


def python(code: str, *args: object) -> list[str]:
    return [sys.executable, "-P", "-c", code, *map(str, args)]


def environment() -> dict[str, str]:
    return ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "NO_COLOR": "1"}


def headrace(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    words = python(COMMAND, "-p", root, *args)
    return subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with two stream tables that take hours to load, whose server the first command has started."""
    project = init_project(tmp_path_factory.mktemp("interrupted") / "shop").root
    with (project / "headrace.toml").open("a") as file:
        file.write(f'"spark.sql.shuffle.partitions" = 2\n"spark.driver.extraJavaOptions" = "{SHORT_LIVED}"\n')
        file.write("[serve]\nidle_minutes = 10\n")
    made = headrace(
        project,
        "sql",
        "CREATE NAMESPACE shop; CREATE TABLE shop.t USING iceberg AS SELECT id FROM range(20000);"
        f"CREATE STREAM TABLE shop.one INITIALIZE false AS {SLOW.format(-1)};"
        f"CREATE STREAM TABLE shop.two INITIALIZE false AS {SLOW.format(-2)}",
    )
    assert made.returncode == 0, made.stderr
    yield project
    assert headrace(project, "serve", "--stop").returncode == 0


def not_loaded(root: Path) -> bool:
    tables = json.loads(headrace(root, "status", "--json").stdout)
    return [table["last_refresh"] for table in tables] == [None, None]


def test_by_hand(root: Path) -> None:
    pipe, running = subprocess.PIPE, set[str]()
    words = python(BY_HAND, root)
    child = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment(), preexec_fn=take_sigint)
    with killed_at_end(child):
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("StageStarted"):
                running.add(line)
            if len(running) == 2:
                break
        time.sleep(1)  # well into their jobs
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == 0, stderr
    assert stdout.splitlines()[-3:] == ["interrupted", "42", "0 jobs run"]
    assert not_loaded(root)


def test_by_a_server(root: Path) -> None:
    """Ctrl-C in a caller has the server cancel its command, which waits in a thread that is not the main one."""
    server = address.connect(str(root))
    assert server is not None
    running, status = set[str](), None
    with server:
        wire.send(server, "POST", "/v1/commands", json.dumps({"args": ["refresh"], "progress": True}).encode())
        for name, data in wire.Answer(server).events():
            if name == "started":
                command = data["id"]
            elif name == "exit":
                status = data["status"]
            elif data.get("event") == "stage_started" and data["table"] not in running:
                running.add(data["table"])
                if len(running) == 2:
                    time.sleep(1)  # well into their jobs
                    cancel(root, command)
    assert status == 130
    assert not_loaded(root)
    assert "1 row" in headrace(root, "sql", "SELECT 1").stdout


def cancel(root: Path, command: str) -> None:
    server = address.connect(str(root))
    assert server is not None
    with server:
        wire.send(server, "POST", f"/v1/commands/{command}/cancel", b"{}")
        assert wire.Answer(server).status == 200
