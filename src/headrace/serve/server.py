"""A project's server: who may ask, what runs, when it ends."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import headrace
from headrace.serve.caller.address import root_identity
from headrace.serve.caller.words import VALUED
from headrace.serve.commands import CommandCall, Execute, RunningCommand
from headrace.serve.freshness import Freshness
from headrace.serve.monitoring.project_monitor import ProjectMonitor
from headrace.serve.warm_projects import WarmProjects

ENDING_SECONDS = 30.0
"""Commands that run when the server is told to end at once are given that long after they were cancelled."""


class ServerState:
    """The state of a server.

    Args:
        root: The project folder.
        projects: Lends open projects to commands.
        execute: Runs a command's words.
        freshness: What it was started with.
        kind: `background`, `foreground`, or `run` where it is part of `headrace run`.
        idle_seconds: How long it stays without work; None for ever.
        monitor: Looks at the project for whoever watches it; None: one is made when somebody does.

    Attributes:
        ending: Set when it takes no more commands.
        leave: Lets another server take this one's place.
    """

    def __init__(
        self,
        root: Path,
        projects: WarmProjects,
        execute: Execute,
        freshness: Freshness,
        *,
        kind: str,
        idle_seconds: float | None,
        monitor: ProjectMonitor | None = None,
    ) -> None:
        self.root = root
        self.projects = projects
        self.kind = kind
        self.ending = threading.Event()
        self.leave: Callable[[], None] = lambda: None
        self._execute = execute
        self._freshness = freshness
        self._idle_seconds = idle_seconds
        self._monitor = monitor
        self._started = dt.datetime.now(dt.UTC)
        self._last = time.monotonic()
        self._commands: dict[str, RunningCommand] = {}
        self._done = 0
        self._lock = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """Return what `headrace serve --status` shows."""
        with self._lock:
            running, done = [_in_short(c.call.args) for c in self._commands.values() if not c.ended], self._done
        return {
            "project": str(self.root),
            "pid": os.getpid(),
            "kind": self.kind,
            "version": headrace.__version__,
            "started_at": self._started.isoformat(timespec="seconds"),
            "spark": "running" if self.projects.spark.started else "not started",
            "running": running,
            "commands": done,
            "ends_when_idle_for": self._idle_seconds,
        }

    def monitor(self) -> ProjectMonitor:
        """Return what looks at the project for whoever watches it."""
        with self._lock:
            if self._monitor is None:
                self._monitor = ProjectMonitor(self.projects.settings)
            return self._monitor

    def is_other_project(self, asked: Mapping[str, Any]) -> bool:
        """Return whether a caller means another project, as in a copy of the folder."""
        try:
            return asked.get("identity") is not None and asked["identity"] != root_identity(str(self.root))
        except OSError:
            return False

    def staleness(self, asked: Mapping[str, Any]) -> str | None:
        """Return why a caller needs another server, as the end of a sentence; None when it does not."""
        if asked.get("root") not in (None, str(self.root)):
            return f"was started when the project was {self.root}"
        return self._freshness.staleness(asked)

    def command(self, asked: Mapping[str, Any]) -> RunningCommand:
        """Return a new command, which is not started yet."""
        call = CommandCall(
            args=tuple(map(str, asked.get("args", ()))),
            folder=Path(str(asked.get("folder") or self.root)),
            environment={str(k): str(v) for k, v in dict(asked.get("environment") or {}).items()},
            terminals={str(k): bool(v) for k, v in dict(asked.get("terminals") or {}).items()},
            width=_number(asked.get("width")),
            height=_number(asked.get("height")),
            encoding=str(asked.get("encoding") or "utf-8"),
            progress=asked.get("progress") is True,
        )
        return RunningCommand(call, self.root, self.projects.borrow)

    def start(self, command: RunningCommand) -> asyncio.Event:
        """Start a command; returns an event of the running loop that is set when it says something."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        with self._lock:
            self._commands[command.id] = command
            self._last = time.monotonic()
        command.start(self._execute, notify)
        return news

    def found(self, number: str) -> RunningCommand | None:
        """Return a command by its id."""
        with self._lock:
            return self._commands.get(number)

    def ended(self, command: RunningCommand) -> None:
        """Note that a command's caller has heard everything, or has left."""
        with self._lock:
            self._commands.pop(command.id, None)
            self._done += 1
            self._last = time.monotonic()

    def is_idle(self) -> bool:
        """Return whether it has been without work for long enough to end."""
        with self._lock:
            busy = any(not command.ended for command in self._commands.values())
            if busy:
                self._last = time.monotonic()
            return self._idle_seconds is not None and time.monotonic() - self._last > self._idle_seconds

    def begin_to_end(self) -> None:
        """Take no more commands, and let another server take this one's place; what runs goes on."""
        self.ending.set()
        self.leave()

    def cancel_commands(self) -> None:
        """Cancel what runs and wait a while for its end."""
        with self._lock:
            commands = list(self._commands.values())
        for command in commands:
            command.cancel()
        self.wait_for_commands(ENDING_SECONDS)

    def wait_for_commands(self, seconds: float) -> None:
        """Wait until no command runs."""
        end = time.monotonic() + seconds
        with self._lock:
            commands = list(self._commands.values())
        for command in commands:
            command.wait(max(0.0, end - time.monotonic()))


def _in_short(args: Sequence[str]) -> str:
    """Return a command line as it is listed: its verb and two words, without the project."""
    rest = [word for before, word in zip(("", *args), args, strict=False) if not {before, word} & set(VALUED)]
    return shorten(" ".join(rest[:3]), 100, placeholder=" …")


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000 else None
