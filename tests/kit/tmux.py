"""A shell in tmux that a test types at: what a terminal of some width shows, wrapped lines included."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROMPT = "there $"
"""The shell's prompt, behind the number of the command."""

LINES = 60

SECONDS = 10.0
"""How long a command is watched that goes on until Ctrl-C."""


class Shell:
    """A shell in a pane of tmux.

    Args:
        program: Where tmux is.
        socket: The socket of a tmux server of its own.
        environment: Variables of the shell, which are those of the first who calls tmux.
    """

    def __init__(self, program: str, socket: Path, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._words = [program, "-f", "/dev/null", "-S", str(socket)]

    def call(self, *words: str) -> str:
        """Ask tmux for something."""
        done = subprocess.run(
            [*self._words, *words], capture_output=True, text=True, env=self._environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, folder: Path, columns: int) -> None:
        """Start the shell."""
        prompt = shlex.quote(f"PS1=\\# {PROMPT} ")  # a shell between would drop the variable
        size = ("-x", str(columns), "-y", str(LINES))
        self.call("new-session", "-d", *size, "-c", str(folder), f"exec env {prompt} bash --norc --noprofile")
        self.wait_for(re.escape(PROMPT))

    def widen(self, columns: int) -> None:
        """Give the terminal another width."""
        self.call("resize-window", "-x", str(columns), "-y", str(LINES))

    def press(self, key: str) -> None:
        """Press a key, in tmux's words: `Enter`, `Tab`, `C-c`."""
        self.call("send-keys", key)

    def type(self, text: str) -> None:
        """Type lines, with Enter between them."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self.press("Enter")
            self.call("send-keys", "-l", "--", f"{line[:-1]}\\;" if line.endswith(";") else line)  # else tmux takes it

    def run(self, command: str, seconds: float = 600, *, until_ctrl_c: bool = False) -> str:
        """Run a command on an empty screen and return it, with what is shown when the shell asks for the next one."""
        self.clear()
        number = int(re.findall(rf"(\d+) {re.escape(PROMPT)}", self.ask())[-1])
        self.type(command)
        self.press("Enter")
        if until_ctrl_c:
            time.sleep(SECONDS)
            self.press("C-c")
        shown = self.wait_for(rf"^{number + 1} {re.escape(PROMPT)}$", seconds)
        return shown.rpartition(f"\n{number + 1} {PROMPT}")[0].partition(f"{PROMPT} ")[2]

    def clear(self) -> None:
        """Empty the screen and what has left it."""
        self.call("send-keys", "-R")
        self.call("clear-history")

    def ask(self) -> str:
        """Press Enter and return the screen."""
        self.press("Enter")
        return self.wait_for(re.escape(PROMPT))

    def screen(self, *, joined: bool = False) -> str:
        """Return what is shown and what has left the screen.

        Args:
            joined: Whether lines that the terminal has wrapped are one again.
        """
        text = self.call("capture-pane", "-p", "-S", "-", *(["-J"] if joined else []))
        return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()

    def wait_for(self, pattern: str, seconds: float = 600) -> str:
        """Wait until the screen has a pattern, and return the screen."""
        end = time.monotonic() + seconds
        while not re.search(pattern, shown := self.screen(), re.MULTILINE):
            assert time.monotonic() < end, f"{pattern!r} was not shown in {seconds} s, but:\n{shown}"
            time.sleep(0.1)
        return shown

    def wrapped(self) -> list[str]:
        """Return the lines that are longer than the terminal is wide."""
        whole = self.screen().split("\n")
        return [line for line in self.screen(joined=True).split("\n") if line not in whole]


@contextmanager
def shell(program: str, folder: Path, environment: Mapping[str, str], columns: int) -> Iterator[Shell]:
    """Yield a shell in a folder, and end it and its tmux after the block."""
    (socket := folder.parent / "tmux").unlink(missing_ok=True)
    found = Shell(program, socket, environment)
    found.begin(folder, columns)
    try:
        yield found
    finally:
        found.call("kill-server")


def commands(block: str) -> Iterator[str]:
    """Yield the commands of a block of shell, each with the lines that its quotes hold together."""
    gathered = ""
    for line in block.strip().split("\n"):
        gathered = f"{gathered}\n{line}" if gathered else line
        try:
            shlex.split(gathered, comments=True)
        except ValueError:  # a quotation goes on
            continue
        yield gathered
        gathered = ""
