"""Commands that a server runs for its callers: a thread each, its output as events."""

from __future__ import annotations

import io
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from headrace.api.facade import Headrace
from headrace.events import Event, fields_of, kind_of
from headrace.spark.interrupts import interrupt_thread

MOST_WAITING = 8 * 2**20
"""Characters that a caller may leave unread; then the command waits for it."""


class RunElsewhere(BaseException):
    """Raised by a command that only its caller's own process can run, such as a prompt."""


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command line and what surrounds it.

    Args:
        args: The words after `headrace`.
        folder: The caller's working folder.
        environment: Its variables.
        terminals: Which of `stdin`, `stdout` and `stderr` are terminals.
        width: Columns of the terminal.
        height: Lines of it.
        encoding: Of the caller's output.
        progress: Whether what happens is told as events, besides as text.
    """

    args: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    terminals: Mapping[str, bool] = field(default_factory=dict)
    width: int | None = None
    height: int | None = None
    encoding: str = "utf-8"
    progress: bool = False


Execute = Callable[["RunningCommand"], int]
"""Runs a command's words to their exit status; the command line's own code."""


class RunningCommand:
    """A command and its thread.

    Args:
        call: What is to be run.
        root: The project folder.
        borrow: Returns an open project for this command alone, and what gives it back.

    Attributes:
        id: Names it to callers.
        stdin, stdout, stderr: Its streams.
    """

    def __init__(
        self, call: CommandCall, root: Path, borrow: Callable[[], tuple[Headrace, Callable[[], None]]]
    ) -> None:
        self.id = uuid.uuid4().hex
        self.call = call
        self.root = root
        self.stdin = cast(IO[str], _Input(self))
        self.stdout = cast(IO[str], _Output(self, "out", bool(call.terminals.get("stdout")), call.encoding))
        self.stderr = cast(IO[str], _Output(self, "err", bool(call.terminals.get("stderr")), call.encoding))
        self._borrow = borrow
        self._project: Headrace | None = None
        self._give_back: Callable[[], None] = lambda: None
        self._untell: Callable[[], None] = lambda: None
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._notify: Callable[[], None] = lambda: None
        self._handed: bytes | None = None
        self._thread: threading.Thread | None = None
        self._cancelling = threading.Lock()
        self._cancelled = self._ended = self._forgotten = False

    @property
    def ended(self) -> bool:
        """Return whether it has ended."""
        return self._ended

    def start(self, execute: Execute, notify: Callable[[], None]) -> None:
        """Begin.

        Args:
            execute: Runs it.
            notify: Called from other threads whenever there are new events.
        """
        self._notify = notify
        self._say("started", {"id": self.id})
        self._thread = threading.Thread(target=self._run, args=(execute,), name=f"command-{self.id[:8]}", daemon=True)
        self._thread.start()

    def project(self) -> Headrace:
        """Return the open project, which this command has for itself until it ends."""
        if self._project is None:
            project, give_back = self._borrow()
            self._project, self._give_back = project, give_back
            if self.call.progress:
                self._untell = project.events.subscribe(self._tell)
        return self._project

    def taken(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the events that came since the last time, texts of one stream in a row as one."""
        with self._changed:
            found, self._waiting = list(self._events), 0
            self._events.clear()
            self._changed.notify_all()
        joined: list[tuple[str, dict[str, Any]]] = []
        for name, data in found:
            if joined and name in ("out", "err") and joined[-1][0] == name:
                joined[-1] = (name, {"text": joined[-1][1]["text"] + data["text"]})
            else:
                joined.append((name, data))
        return joined

    def hand(self, text: bytes) -> None:
        """Give it what it reads from stdin."""
        with self._changed:
            self._handed = text
            self._changed.notify_all()

    def cancel(self) -> None:
        """Cancel its Spark jobs and interrupt it; returns at once."""
        with self._changed:
            if self._cancelled or self._ended or self._thread is None:
                return
            self._cancelled = True
            self._changed.notify_all()
        ident = self._thread.ident or 0
        threading.Thread(
            target=interrupt_thread,
            args=(ident, self._cancel_jobs),
            kwargs={"gone": lambda: self._ended},
            name="headrace-cancel",
            daemon=True,
        ).start()

    def forget(self) -> None:
        """Drop what it still says: nobody listens any more. Cancels it."""
        with self._changed:
            self._forgotten = True
            self._events.clear()
            self._changed.notify_all()
        self.cancel()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it came."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self._ended

    def _cancel_jobs(self) -> None:
        with self._cancelling:
            if self._project is not None and not self._ended:  # else they are those of another command
                self._project.cancel_jobs()

    def _run(self, execute: Execute) -> None:
        status, local = 1, False
        try:
            status = execute(self)
        except RunElsewhere:
            local = True
        except KeyboardInterrupt:  # came when everything else was done
            status = 130
        finally:
            self._ended = True
            try:  # noqa: SIM105 - an interrupt on its way hits the first call, which must be in the block
                time.sleep(0)
            except KeyboardInterrupt:
                pass
            with self._cancelling:
                pass  # who cancels has noticed
            try:
                self._untell()
                self._give_back()
            finally:  # or the caller would wait for ever
                self._say("local", {}) if local else self._say("exit", {"status": status})

    def _say(self, name: str, data: dict[str, Any]) -> None:
        with self._changed:
            if not self._forgotten:
                self._events.append((name, data))
                self._waiting += len(data.get("text", ""))
        self._notify()

    def _tell(self, event: Event) -> None:
        self._say("progress", {"event": kind_of(event), **fields_of(event)})

    def _write(self, name: str, text: str) -> None:
        with self._changed:
            while self._waiting > MOST_WAITING and not (self._forgotten or self._cancelled):
                self._changed.wait(1.0)
        self._say(name, {"text": text})

    def _read(self) -> bytes:
        self._say("stdin", {})
        with self._changed:
            while self._handed is None:
                if self._cancelled or self._forgotten:
                    raise KeyboardInterrupt
                self._changed.wait(0.5)
            return self._handed


class _Output(io.TextIOBase):
    """A stream of a command that becomes events."""

    def __init__(self, command: RunningCommand, name: str, terminal: bool, encoding: str) -> None:
        self._command = command
        self._name = name
        self._terminal = terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return that of the caller's stream."""
        return self._encoding

    def isatty(self) -> bool:
        """Return whether the caller's stream is a terminal."""
        return self._terminal

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Pass the text on."""
        if text:
            self._command._write(self._name, text)
        return len(text)


class _Input(io.TextIOBase):
    """The caller's stdin, asked for when it is read."""

    def __init__(self, command: RunningCommand) -> None:
        self._command = command

    def isatty(self) -> bool:
        """Return whether the caller's stream is a terminal."""
        return bool(self._command.call.terminals.get("stdin"))

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, _size: int | None = -1, /) -> str:
        """Return all of it."""
        return self._command._read().decode("utf-8")
