"""The verbs about pipelines that run themselves; none of these starts Spark."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from catalog_kit.samples import lake
from catalog_kit.stream_tables import create_stream_table
from click.testing import Result
from kit.child_process import killed_at_end
from kit.pipelines import Lake, PublishingWorker, define, scheduler

from headrace.catalog import Catalog, Definition, Mirror, Publication, SourceMove
from headrace.definitions.details import Details, to_json
from headrace.semantics import Semantics
from headrace.sources.postgres.setup.open_capture import options_of

from .conftest import Process, Run, command, environment


@pytest.fixture
def pipeline(project: Path, tmp_path: Path) -> Path:
    url = f"sqlite:///{project / 'headrace.db'}"
    Lake(url, tmp_path).base("s.a")
    with Catalog.open(url) as catalog:
        define(catalog, "b: a; c: a; d: b c; e: a", {"d": "ON CHANGE", "e": "ON CHANGE"})
        catalog.pause([lake("s.e")])
    return project


def test_a_dry_run_says_what_why_and_what_waits(run: Run, pipeline: Path) -> None:
    result = run("run", "--dry-run", "-p", pipeline)
    assert result.exit_code == 0
    assert "s.b, s.c, s.d" in result.output
    assert "s.e is paused" in result.output
    (unit, waits) = json.loads(run("run", "--dry-run", "--json", "-p", pipeline).stdout)
    assert (unit["tables"], unit["why"], unit["waits"]) == (["s.b", "s.c", "s.d"], "not loaded yet", False)
    assert (waits["tables"], waits["waits"]) == (["s.e"], True)


def test_groups(run: Run, pipeline: Path) -> None:
    (group,) = json.loads(run("diamonds", "--json", "-p", pipeline).stdout)
    assert (group["name"], group["members"], group["converge"]) == ("s.d", ["s.b", "s.c", "s.d"], ["s.d"])
    assert (group["policy"], group["epoch"], group["last_publication"]) == ("fastest", 0, None)
    assert "s.b, s.c, s.d" in run("diamonds", "-p", pipeline).output


def test_a_project_says_what_diamonds_are_to_it(run: Run, pipeline: Path) -> None:
    file = pipeline / "headrace.toml"
    specs = "[headrace]\ndiamond_consistency = 'none'\ndiamond_schedule_policy = 'slowest'"
    file.write_text(file.read_text(encoding="utf-8").replace("[headrace]", specs), encoding="utf-8")
    assert json.loads(run("diamonds", "--json", "-p", pipeline).stdout) == []
    run("sql", "ALTER STREAM TABLE s.d SET PROPERTIES (diamond_consistency = atomic)", "-p", pipeline)
    (group,) = json.loads(run("diamonds", "--json", "-p", pipeline).stdout)
    assert (group["members"], group["policy"]) == (["s.b", "s.c", "s.d"], "slowest")


def test_definitions_are_printed_as_they_can_be_run(run: Run, project: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{project / 'headrace.db'}"
    query = "SELECT [1][0] AS `a\tb`\n\tFROM s.a -- [bold]"
    details = to_json(Details(query, (), Semantics(), (), (), {}, (), None))
    with Catalog.open(url) as catalog:
        for name, read in (("c", "b"), ("b", "a")):
            create_stream_table(catalog, Definition(lake(f"s.{name}"), query, (lake(f"s.{read}"),), details=details))
        second = to_json(Details(query, (), Semantics(), (), (), {}, (), None, deployment="green"))
        create_stream_table(catalog, Definition(lake("s__green.b"), query, (lake("s.a"),), details=second))
    one = f"CREATE STREAM TABLE s.b\n  REFRESH MODE AUTO\n  INITIALIZE FALSE\n  AS\n{query}\n;"
    assert run("show-create", "s.b", "-p", project).stdout == f"{one}\n"
    assert run("sql", "SHOW CREATE STREAM TABLE s.b", "-p", project).stdout == f"{one}\n"
    assert json.loads(run("show-create", "s.b", "--json", "-p", project).stdout) == {"sql": one}
    assert run("show-create", "-p", project).stdout == f"{one}\n\n{one.replace('TABLE s.b', 'TABLE s.c')}\n"
    missing = run("show-create", "s.z", "-p", project)
    assert (missing.exit_code, "STREAM_TABLE_NOT_FOUND" in missing.output) == (1, True)
    (first, *_) = json.loads(run("status", "--json", "-p", project).stdout)
    assert (first["properties"], first["pool"], first["group"], first["policy"]) == ({}, None, None, None)


def test_pausing_and_resuming(run: Run, pipeline: Path) -> None:
    assert run("resume", "s.e", "-p", pipeline).output == "Resumed s.e.\n"
    assert "waits" not in run("run", "--dry-run", "-p", pipeline).output
    assert json.loads(run("pause", "--json", "-p", pipeline).stdout) == ["s.b", "s.c", "s.d", "s.e"]
    assert "s.b is paused" in run("diamonds", "--json", "-p", pipeline).stdout  # tables break lines by width
    told = run("events", "-p", pipeline).output
    assert "Resumed s.e." in told
    assert "Paused s.b, s.c, s.d, s.e." in told
    result = run("pause", "s.nothing", "-p", pipeline)
    assert (result.exit_code, "STREAM_TABLE_NOT_FOUND" in result.output) == (1, True)


def test_what_failed_together_is_resumed_together(run: Run, pipeline: Path) -> None:
    with Catalog.open(f"sqlite:///{pipeline / 'headrace.db'}") as catalog:
        catalog.pause([lake("s.b")])
        catalog.note_failure([lake(f"s.{name}") for name in "bcd"], "TEST_FAULT", "It failed.", lambda _: None)
        assert run("resume", "s.c", "-p", pipeline).output == "Resumed s.c, s.b, s.d.\n"
        scheduling = catalog.scheduling_states()
    assert [(scheduling[lake(f"s.{n}")].failures, scheduling[lake(f"s.{n}")].suspended_at) for n in "bcd"] == 3 * [
        (0, None)
    ]
    assert scheduling[lake("s.b")].paused_at is not None  # by somebody else, for another reason
    (group,) = json.loads(run("diamonds", "--json", "-p", pipeline).stdout)
    assert group["waits_for"] == "s.b is paused"


def test_a_group_says_what_it_waits_for(run: Run, pipeline: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{pipeline / 'headrace.db'}"
    lake_ = Lake(url, tmp_path)

    def waits() -> str | None:
        found = json.loads(run("diamonds", "--json", "-p", pipeline).stdout)
        return next(group["waits_for"] for group in found if group["name"] == "s.h")  # type: ignore[no-any-return]

    lake_.base("s.z", "s.a")
    with Catalog.open(url) as catalog:
        define(catalog, "f: e; g: e z; h: f g", {"f": "1 day", "h": "ON CHANGE"})
        assert waits() == "s.e is paused"  # which is no member
        catalog.unpause([lake("s.e")])
        assert waits() == "s.e is not loaded yet"
        catalog.create_watermark_group("loads", (lake("s.a"), lake("s.z")), dt.timedelta(0))
        assert waits() == "s.g is waiting for watermark group loads"
        catalog.drop_watermark_group("loads")
        worker = PublishingWorker(lake_, catalog)
        scheduler(catalog, worker).run(threading.Event(), once=True)
        assert waits() is None
        catalog.alter_stream_table(lake("s.h"), options={"diamond_schedule_policy": "slowest"})
        lake_.base("s.z", "s.a")
        scheduler(catalog, worker, ahead=60).run(threading.Event(), once=True)
        time.sleep(1.1)  # ON CHANGE pauses for a second
        assert waits() == "s.f, not due yet"


def test_nothing_to_tell(run: Run, project: Path) -> None:
    assert run("run", "--dry-run", "-p", project).output == "Nothing is due.\n"
    assert run("diamonds", "-p", project).output == "No stream tables have to be published together.\n"
    assert run("drain", "-p", project).output == "No schedules are run at the moment.\n"
    assert run("pause", "-p", project).output == "There are no stream tables.\n"
    assert (
        run("events", "-p", project).output == "There are no events yet; schedulers write them, see `headrace run`.\n"
    )
    assert run("graph", "--levels", "-p", project).output == "There are no stream tables yet.\n"


def test_running_once_fails_when_a_source_was_not_landed(run: Run, project: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:9/shop"
    mirror = Mirror(lake("shop.items"), lake("_headrace.shop_items_log"))
    with Catalog.open(f"sqlite:///{project / 'headrace.db'}") as catalog:
        catalog.create_source("shop", "postgres", options_of("shop", url, {"items": ("public", "items")}), [mirror])
        catalog.publish(Publication(sources=(SourceMove("shop", None, {"lsn": 1}, (), activates=True),)))
    result = run("run", "--once", "--json", "-p", project)
    assert result.exit_code == 1
    assert "SOURCE_UNREACHABLE" in result.stdout


@pytest.mark.parametrize("grace", ["inf", "nan", "-1", "1e300"])
def test_no_end_is_no_grace(run: Run, project: Path, grace: str) -> None:
    assert run("run", "--once", "--grace", grace, "-p", project).exit_code == 2


def test_running_once_with_nothing_to_do_tells_json_lines(run: Run, project: Path) -> None:
    result = run("run", "--once", "--json", "-p", project)
    assert result.exit_code == 0
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["event"] for line in told] == ["scheduler_started", "scheduler_stopped"]
    kept = [json.loads(line) for line in run("events", "--json", "-p", project).stdout.splitlines()]
    assert [line["event"] for line in kept] == ["scheduler_started", "scheduler_stopped"]
    assert "scheduler_stopped" in run("events", "-n", 1, "-p", project).output


@pytest.mark.parametrize("number", ["0", "33", "many"])
def test_so_many_at_once_are_not_possible(run: Run, project: Path, number: str) -> None:
    assert run("run", "--max-concurrent", number, "-p", project).exit_code == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max_concurrent_refreshes = 33", "1 to 32"),
        ("default_schedule = 'sometimes'", "default_schedule in "),
        ("suspend_after = 0", "suspend_after is '0'"),
        ("diamond_consistency = 'maybe'", "none, atomic"),
        ("diamond_schedule_policy = 'never'", "fastest, slowest"),
        ("maintenance_every = 'now and then'", "'never'"),
        ("keep_history = '3 hours'", "'forever'"),
        ("webhook = 'over there'", "https://host/path"),
        ("webhook = 'https://hooks.corp/team a'", "https://host/path"),
        ("on_event = 'tell me'", "module:function"),
        ("[pools]\nfinance = 0", "finance"),
    ],
)
def test_settings_that_cannot_be(run: Run, project: Path, line: str, words: str) -> None:
    file = project / "headrace.toml"
    text = file.read_text(encoding="utf-8")
    changed = f"{text}\n{line}\n" if line.startswith("[") else text.replace("[headrace]", f"[headrace]\n{line}")
    file.write_text(changed, encoding="utf-8")
    result = run("status", "-p", project)
    assert result.exit_code == 1
    assert words in result.output


@contextmanager
def scheduling(project: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A scheduler in a process of its own, which has begun, and what it prints from then on."""
    child = subprocess.Popen(
        command("run", "--json", "-p", project), stdout=subprocess.PIPE, text=True, cwd=folder, env=environment()
    )
    with killed_at_end(child):
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["event"] == "scheduler_started"
        yield child, child.stdout


def test_a_process_ends_when_it_is_drained(process: Process, project: Path, tmp_path: Path) -> None:
    with scheduling(project, tmp_path) as (first, _):
        assert str(first.pid) in process("drain", "-p", project).stdout
        assert first.wait(60) == 0


def test_a_process_ends_at_sigterm_and_refuses_a_second(process: Process, project: Path, tmp_path: Path) -> None:
    with scheduling(project, tmp_path) as (first, printed):
        second = process("run", "--once", "-p", project)
        assert second.returncode == 1
        assert "SCHEDULER_RUNNING" in second.stderr
        assert f":{first.pid}:" in second.stderr
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        assert json.loads(printed.readline())["event"] == "scheduler_stopped"


def test_events_are_followed_as_they_happen(run: Run, pipeline: Path, tmp_path: Path) -> None:
    run("pause", "s.b", "-p", pipeline)
    follower = subprocess.Popen(
        command("events", "--follow", "--json", "-p", pipeline),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        # Children of a shell that ignores SIGINT (a background job) would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with killed_at_end(follower):
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["event"] == "paused"
        run("resume", "s.b", "-p", pipeline)
        told = json.loads(follower.stdout.readline())
        assert (told["event"], told["fields"]["tables"]) == ("resumed", ["s.b"])
        follower.send_signal(signal.SIGINT)
        assert follower.wait(180) == 130


def test_who_follows_events_catches_up(run: Run, pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps = list[float]()

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) > 1:
            raise KeyboardInterrupt
        now = dt.datetime.now(dt.UTC)
        with Catalog.open(f"sqlite:///{pipeline / 'headrace.db'}") as catalog:
            catalog.write_events([(now, "notice", {"message": str(number)}) for number in range(7)])

    monkeypatch.setattr("headrace.cli.verbs.running.FOLLOW_EVENTS", 3)
    monkeypatch.setattr("headrace.cli.verbs.running.time", SimpleNamespace(sleep=nap))
    told = run("events", "--follow", "-n", "2", "--json", "-p", pipeline).stdout.splitlines()
    assert [json.loads(line)["fields"].get("message") for line in told] == [str(number) for number in range(7)]
    assert naps == [1.0, 1.0]


def test_properties_are_set(run: Run, pipeline: Path) -> None:
    assert run("alter", "s.b", "--set", "Tier=cold", "--set", "pool=finance", "-p", pipeline).exit_code == 0
    run("alter", "s.b", "--set", "tier=warm", "-p", pipeline)
    with Catalog.open(f"sqlite:///{pipeline / 'headrace.db'}") as catalog:
        assert catalog.stream_table(lake("s.b")).options == {"tier": "warm", "pool": "finance"}
    assert "tier cannot be 'tepid'" in run("alter", "s.b", "--set", "tier=tepid", "-p", pipeline).stderr


def test_groups_that_users_declare(run: Run, pipeline: Path) -> None:
    def sql(text: str) -> Result:
        return run("sql", text, "-p", pipeline)

    sql("ALTER STREAM TABLE s.d SET PROPERTIES (diamond_consistency = none)")
    assert json.loads(run("diamonds", "--json", "-p", pipeline).stdout) == []
    assert sql("CREATE REFRESH GROUP ours AS s.b, s.e").exit_code == 0
    (group,) = json.loads(run("diamonds", "--json", "-p", pipeline).stdout)
    assert (group["members"], group["declared"], group["converge"]) == (["s.b", "s.e"], ["ours"], [])
    assert "declared as ours" in run("diamonds", "-p", pipeline).output
    sql("ALTER STREAM TABLE s.d SET PROPERTIES (diamond_consistency = atomic)")
    assert "s.d; declared as ours" in run("diamonds", "-p", pipeline).output
    sql("ALTER STREAM TABLE s.d SET PROPERTIES (diamond_consistency = none)")
    for wrong, code in (
        ("CREATE REFRESH GROUP ours AS s.b, s.c", "GROUP_EXISTS"),
        ("CREATE REFRESH GROUP theirs AS s.c, s.e", "GROUP_MEMBER_TAKEN"),
        ("CREATE REFRESH GROUP theirs AS s.c, s.gone", "STREAM_TABLE_NOT_FOUND"),
        ("CREATE REFRESH GROUP theirs AS s.c", "INVALID_OPTION"),
        ("CREATE REFRESH GROUP theirs s.c", "SYNTAX_ERROR"),
        ("DROP REFRESH GROUP theirs", "GROUP_NOT_FOUND"),
    ):
        result = sql(wrong)
        assert (result.exit_code, code in result.output) == (1, True), wrong
    assert sql("DROP REFRESH GROUP IF EXISTS theirs").exit_code == 0
    assert sql("DROP REFRESH GROUP ours").exit_code == 0
    assert json.loads(run("diamonds", "--json", "-p", pipeline).stdout) == []
