"""Commands that a server runs: however one ends, its caller hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from headrace.api.facade import Headrace
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
