"""A real server with a real Spark: every verb answers as without it, commands do not mix, and cancelling hits one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import CommandsHere
from kit.child_process import killed_at_end
from kit.pages import opened, page_server
from kit.sigint import take_sigint
from kit.sparks import SHORT_LIVED
from kit.waiting import until

from headrace.config import load
from headrace.project.new_project import init_project
from headrace.serve.caller import address, wire

Done = subprocess.CompletedProcess[str]
CODE = "from headrace.cli.start import main; main()"
SLOW = "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE rand() < 2"
OTHER = "SELECT count(*) AS n FROM range(0, 100000000, 1, 2) WHERE rand() < 2"


ENVIRONMENT = dict(os.environ)
"""As it was before this process started a Spark, which sets variables of its own."""


def environment(**changes: str) -> dict[str, str]:
    kept = {k: v for k, v in ENVIRONMENT.items() if k not in ("HEADRACE_NO_SERVE", "HEADRACE_PROJECT")}
    source = str(Path(__file__).parents[2] / "src")
    return kept | {"PYTHONPATH": source, "NO_COLOR": "1"} | changes


def words(root: Path, *args: object) -> list[str]:
    return [sys.executable, "-P", "-c", CODE, "-p", str(root), *map(str, args)]


def hr(root: Path, *args: object, stdin: str | None = None, **changes: str) -> Done:
    given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        words(root, *args), capture_output=True, text=True, env=environment(**changes), check=False, **given
    )


def facts(root: Path) -> dict[str, object]:
    return get(root, "/v1/server")[1]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with a stream table, whose server the first command has started."""
    project = init_project(tmp_path_factory.mktemp("serve") / "shop").root
    with (project / "headrace.toml").open("a") as file:
        file.write(f'"spark.sql.shuffle.partitions" = 2\n"spark.driver.extraJavaOptions" = "{SHORT_LIVED}"\n')
        file.write("[serve]\nidle_minutes = 10\n")
    first = hr(
        project,
        "sql",
        "CREATE NAMESPACE shop; CREATE TABLE shop.orders USING iceberg AS SELECT id, id % 3 AS region FROM range(9);"
        "CREATE STREAM TABLE shop.counts AS SELECT region, count(*) AS n FROM shop.orders GROUP BY region",
    )
    assert first.returncode == 0, first.stderr
    assert "Started a server that keeps Spark warm" in first.stderr
    yield project
    assert hr(project, "serve", "--stop").returncode == 0
    assert address.connect(str(project)) is None


VERBS: tuple[tuple[str, ...], ...] = (
    ("sql", "SELECT region, count(*) AS n FROM shop.orders GROUP BY region ORDER BY region"),
    ("sql", "SELECT * FROM nowhere"),
    ("sql", "USE lake.shop; SELECT count(*) AS n FROM orders"),
    ("sql", "SELECT count(*) AS n FROM orders"),  # the namespace was that of one command
    ("sql",),
    ("create", "shop.counts", "SELECT 1 AS x"),
    ("create", "shop.wrong", "SELEC 1"),
    ("alter", "shop.counts"),
    ("alter", "shop.counts", "--schedule", "5 minutes"),
    ("drop", "shop.missing", "--if-exists"),
    ("refresh",),
    ("refresh", "shop.missing"),
    ("refresh", "--wait", "long"),
    ("verify",),
    ("explain", "shop.counts", "--mode", "FULL"),
    ("validate", "-f", "query.sql"),
    ("validate", "-"),
    ("maintain", "--dry-run"),
    ("status",),
    ("show-create",),
    ("history", "-n", "1"),
    ("graph",),
    ("functions",),
    ("diamonds",),
    ("events",),
    ("pause", "shop.counts"),
    ("resume",),
    ("drain",),
    ("fuse",),
    ("gate", "list"),
    ("watermark", "list"),
    ("key", "list"),
    ("source", "list"),
    ("sink", "list"),
    ("deploy", "status"),
    ("nonsense",),
)


def without_times(text: str) -> str:
    """What a command says, but for moments and durations, which differ from one call to the next."""
    text = re.sub(r"\d+(\.\d+)? (ms|s|min)( ago)?|\d{4}-\d\d-\d\d[T ][\d:.+]+|\"id\": \d+", "#", text)
    text = re.sub(r"\"(seconds|total_seconds|\w*_ms|at|paused_at|checked_at)\": [^,\n]+", "#", text)
    return re.sub(r"[ ─]+", " ", text)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join(verb)[:40])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_every_verb_answers_as_without_a_server(
    root: Path, commands_here: CommandsHere, verb: tuple[str, ...], form: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "query.sql").write_text("SELECT region, count(*) AS n FROM shop.orders GROUP BY region")
    stdin = "SELECT id FROM shop.orders" if verb[-1] in ("-", "sql") else None
    before = facts(root)["commands"]
    served = subprocess.run(
        words(root, *verb, *form),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        input=stdin or "",
        check=False,
    )
    assert facts(root)["commands"] == int(str(before)) + 1, served.stderr
    with contextlib.chdir(tmp_path):
        here = commands_here.run(root, [*verb, *form], stdin or "")
    assert (served.returncode, without_times(served.stdout)) == (here.exit_code, without_times(here.stdout))
    assert without_times(served.stderr) == without_times(here.stderr)


def test_commands_at_once_do_not_mix(root: Path) -> None:
    found: dict[int, Done] = {}

    def ask(number: int) -> None:
        found[number] = hr(root, "sql", f"SELECT id AS n{number} FROM range({number * 100}, {number * 100 + 3})")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, done in found.items():
        assert re.findall(r"\d\d\d", done.stdout) == [str(number * 100 + i) for i in range(3)], done
        assert f"n{number}" in done.stdout


@contextlib.contextmanager
def started(root: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        words(root, *args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=take_sigint,
    )
    with killed_at_end(child):
        yield child


def wait_for(root: Path, count: int) -> None:
    """Wait until so many commands run that ask for much."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        running = [line for line in facts(root)["running"] if "rand()" in line]  # type: ignore[attr-defined]
        if len(running) == count:
            return
        time.sleep(0.1)
    raise AssertionError(f"never were there {count}")


@pytest.mark.parametrize("leaving", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_or_leaving_cancels_one_command_and_nothing_else(root: Path, leaving: signal.Signals) -> None:
    with contextlib.ExitStack() as stack:
        child = stack.enter_context(started(root, "sql", SLOW))
        wait_for(root, 1)
        other = stack.enter_context(started(root, "sql", OTHER))
        wait_for(root, 2)
        child.send_signal(leaving)
        stdout, stderr = child.communicate(timeout=120)
        if leaving is signal.SIGINT:
            assert (child.returncode, stdout) == (130, "")
            assert stderr == "Interrupted. Nothing of what was under way has been published.\n"
        stdout, stderr = other.communicate(timeout=300)
        assert "100000000" in stdout, stderr
    wait_for(root, 0)
    assert "1 row" in hr(root, "sql", "SELECT 1").stdout


def test_resources_are_what_commands_print(root: Path) -> None:
    for path, args in (("status", ("status",)), ("history?limit=1", ("history", "-n", "1")), ("graph", ("graph",))):
        assert get(root, f"/v1/{path}") == (200, json.loads(hr(root, *args, "--json").stdout))
    assert get(root, "/v1/explain")[0] == 400
    status, document = get(root, "/v1/history?name=shop.missing")
    assert (status, document["error"]["code"]) == (422, "STREAM_TABLE_NOT_FOUND")  # type: ignore[index,call-overload]
    paths = get(root, "/openapi.json")[1]["paths"]  # type: ignore[call-overload,index]
    assert {"/v1/status", "/v1/commands", "/v1/commands/{id}/cancel"} <= set(paths)


def get(root: Path, path: str) -> tuple[int, dict[str, object]]:
    connection = address.connect(str(root))
    assert connection is not None
    with connection:
        wire.send(connection, "GET", path)
        answer = wire.Answer(connection)
        return answer.status, json.loads(answer._file.read())


def test_progress_is_told_as_events(root: Path) -> None:
    connection = address.connect(str(root))
    assert isinstance(connection, socket.socket)
    body = json.dumps({"args": ["refresh", "--full"], "progress": True}).encode()
    with connection:
        wire.send(connection, "POST", "/v1/commands", body)
        events = list(wire.Answer(connection).events())
    assert [name for name, _ in events][0 :: len(events) - 1] == ["started", "exit"]
    assert events[-1][1] == {"status": 0}
    told = {data["event"] for name, data in events if name == "progress"}
    assert {"refresh_started", "refresh_finished"} <= told


def test_the_page_refreshes_and_explains_by_the_server(root: Path) -> None:
    hr(root, "sql", "INSERT INTO shop.orders VALUES (100, 7)")
    with page_server(load(root), "--actions") as (url, _process):
        browser = opened(url)
        explained = browser.ask("/explain/shop.counts").page()
        assert not explained.faults
        assert "DIFFERENTIAL" in explained.text
        forms = browser.ask("/tables/shop.counts").page().forms
        refresh = next({k: v for k, v in form.items() if k} for form in forms if form.get("verb") == "refresh")
        before = len(browser.ask("/runs").page().links)
        assert browser.ask("/actions", refresh).status == 303
        until(lambda: "refresh shop.counts done" in browser.ask("/").page().text)
        assert len(browser.ask("/runs").page().links) > before
        unknown = {**refresh, "name": "--help"}  # a name, whatever it looks like
        assert browser.ask("/actions", unknown).status == 303
        until(lambda: "refresh --help failed" in browser.ask("/").page().text)
        assert not browser.ask("/").page().faults
    assert "7" in hr(root, "sql", "SELECT region FROM shop.counts WHERE n = 1").stdout


def test_a_server_that_is_killed_in_the_middle_of_a_command(root: Path) -> None:
    hr(root, "sql", "SELECT 1")
    with started(root, "sql", SLOW) as child:
        wait_for(root, 1)
        os.kill(int(str(facts(root)["pid"])), signal.SIGKILL)
        stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (1, "")
    assert "[SERVER_LOST]" in stderr
    assert "Hint: Run it again" in stderr
    with contextlib.ExitStack() as stack:
        racing = [stack.enter_context(started(root, "sql", "SELECT 41 + 1 AS answer")) for _ in range(2)]
        answers = [child.communicate(timeout=300) for child in racing]
    assert all("42" in stdout for stdout, _ in answers), answers
    assert sum("Started a server" in stderr for _, stderr in answers) == 1


def test_another_setting_has_the_server_started_anew(root: Path) -> None:
    pid = facts(root)["pid"]
    done = hr(root, "sql", "SELECT 1", PGOPTIONS="-c x=1")
    assert "was started with another value of PGOPTIONS; starting another." in done.stderr
    assert (done.returncode, facts(root)["pid"] != pid) == (0, True)
    assert "starting another" not in hr(root, "status", PGOPTIONS="-c x=1").stderr
    assert "starting another" in hr(root, "sql", "SELECT 1").stderr  # as it was, whatever test is next
