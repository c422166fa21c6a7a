"""Commands that a server runs: however one ends, its caller hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import headrace
from headrace.api.facade import Headrace
from headrace.cli.main import app
from headrace.cli.served import executor
from headrace.project.new_project import init_project
from headrace.serve.commands import CommandCall, RunElsewhere, RunningCommand


class Project:
    """An open project as far as a command uses it by itself."""

    def cancel_jobs(self) -> None:
        """It runs none."""


def ended(execute: Callable[[RunningCommand], int], give_back: Callable[[], None] = lambda: None) -> list[object]:
    """What the caller of a command is told of its end."""
    project, finished = Project(), threading.Event()
    command = RunningCommand(CommandCall((), Path()), Path(), lambda: (cast(Headrace, project), give_back))
    told: list[object] = []

    def look() -> None:
        told.extend(event for event in command.taken() if event[0] != "started")
        if told:
            finished.set()

    command.start(execute, look)
    assert finished.wait(60)
    return told


def test_an_end_is_told() -> None:
    assert ended(lambda _: 3) == [("exit", {"status": 3})]


def elsewhere(_: RunningCommand) -> int:
    raise RunElsewhere


def test_a_command_for_its_callers_own_process() -> None:
    assert ended(elsewhere) == [("local", {})]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_end_is_told_whatever_breaks_as_the_project_is_given_back() -> None:
    def break_down() -> None:
        raise RuntimeError("the JVM is gone")

    def borrows(command: RunningCommand) -> int:
        command.project()
        return 0

    assert ended(borrows, break_down) == [("exit", {"status": 0})]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_ends_a_command_too() -> None:
    def defect(_: RunningCommand) -> int:
        raise ZeroDivisionError

    assert ended(defect) == [("exit", {"status": 1})]


def test_an_interrupt_ends_a_command() -> None:
    def waits(command: RunningCommand) -> int:
        command.project()
        command.cancel()
        while True:
            time.sleep(0.01)

    assert ended(waits) == [("exit", {"status": 130})]


@pytest.fixture
def two_projects(tmp_path: Path) -> tuple[Path, Path]:
    return init_project(tmp_path / "a").root, init_project(tmp_path / "b").root


def told_of(root: Path, *args: str, **environment: str) -> list[object]:
    """What a caller in a project's folder is told of a command, by that project's server."""

    def borrow() -> tuple[Headrace, Callable[[], None]]:
        project = headrace.open(root)
        return project, project.close

    command, finished = RunningCommand(CommandCall(args, root, environment), root, borrow), threading.Event()
    told: list[object] = []

    def look() -> None:
        told.extend(event for event in command.taken() if event[0] in ("exit", "local"))
        if told:
            finished.set()

    command.start(executor(app), look)
    assert finished.wait(60)
    return told


@pytest.mark.parametrize("option", [["-p{}"], ["-qp{}"], ["-q", "--project", "{}"], ["--project={}"]])
def test_a_command_for_another_project_is_not_run_in_this_one(
    two_projects: tuple[Path, Path], option: list[str]
) -> None:
    here, other = two_projects
    for folder in (str(other), "../b", "../b/headrace.toml", "nowhere"):
        named = [word.format(folder) for word in option]
        assert told_of(here, *named, "drop", "shop.revenue") == [("local", {})]
    for folder in (str(here), "../a", ".", "headrace.toml"):
        named = [word.format(folder) for word in option]
        assert told_of(here, *named, "status") == [("exit", {"status": 0})]


def test_a_servers_own_variable_says_nothing_of_its_callers(
    two_projects: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = two_projects
    monkeypatch.setenv("HEADRACE_PROJECT", str(other))
    assert told_of(here, "status") == [("exit", {"status": 0})]
