"""A terminal that a test types at: a process behind a pseudo-terminal, and what it has shown."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from kit.sigint import take_sigint

CTRL_C, TAB, ENTER = "\x03", "\t", "\r"

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()].|\x1b[=>]|\r")


def _take_terminal() -> None:
    """Have Ctrl-C become a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    take_sigint()


class Terminal:
    """Runs a command in a terminal.

    Args:
        command: Its words.
        folder: Where it runs.
        environment: Its variables.
        lines, columns: The terminal's size.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        lines: int = 40,
        columns: int = 100,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._shown = ""
        self._seen = 0
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str, seconds: float = 300) -> str:
        """Wait until a text is shown; return all that was shown since the last time."""
        end = time.monotonic() + seconds
        while text not in (shown := self._plain()[self._seen :]):
            assert time.monotonic() < end, f"{text!r} was not shown in {seconds} s, but:\n{shown[-2000:]}"
            assert self.process.poll() is None, f"it ended before {text!r} was shown:\n{shown}"
            time.sleep(0.05)
        self._seen += shown.index(text) + len(text)
        return shown

    def everything(self) -> str:
        """Return all that was shown since the start."""
        return self._plain()

    def _plain(self) -> str:
        return _CONTROL.sub("", self._shown)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                self._shown += decoder.decode(os.read(self._master, 65536))
            except OSError:  # it ended
                return
