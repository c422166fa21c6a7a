"""Does what a tutorial says, block by block, as somebody would who types it into a shell.

A page's blocks of `sh`, `python` and `sql` are run in order, where the reader stands by then; a block of `text` is what
the one before has printed, but for durations, moments and widths: each of its lines has to be there, in that order.
A comment above a block says what is different about it: `<!-- not run: reason -->`, or `<!-- until Ctrl-C -->`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kit.sigint import take_sigint

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^>]*) -->\n\n?)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
RUN = ("sh", "python", "sql")
TUTORIALS = ("README.md", "docs/getting-started.md", "docs/from-spark-sql.md")
"""The pages whose blocks are followed, each from an empty folder."""

COMMAND = "from headrace.cli.start import main; main()"
SECONDS = 5.0
"""How long a command is watched that goes on until Ctrl-C."""


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Args:
        place: The page and the line, for messages.
        language: `sh`, `python`, `sql`, `text` or another one.
        text: What it says.
        note: The comment above it, or an empty text.
    """

    place: str
    language: str
    text: str
    note: str


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, first to last."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(f"{page.name}:{text.count(chr(10), 0, m.start('text'))}", m["language"], m["text"], m["note"] or "")
        for m in BLOCK.finditer(text)
    ]


def steady(text: str) -> list[str]:
    """Return the lines of an output without what differs from one run to the next."""
    text = re.sub(r"(\d+ min )?\d+(\.\d+)? (ms|s|min|Spark jobs)\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "#", text)
    lines = (re.sub(r"[ ─]+", " ", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def missing(shown: str, printed: str) -> str | None:
    """Return the first line of what a page shows that was not printed, in this order; None where all were.

    A page may leave out the end of a line.
    """
    rest = iter(steady(printed))
    return next((line for line in steady(shown) if not any(f"{found} ".startswith(f"{line} ") for found in rest)), None)


@dataclass
class Typist:
    """Somebody who follows a page in a shell.

    Args:
        folder: Where the shell is; it moves on with `cd`.
        environment: The environment of the shell.
    """

    folder: Path
    environment: dict[str, str]
    printed: str = field(default="", init=False)

    def follow(self, page: Path) -> int:
        """Do what the blocks of a page say, and return how many were run."""
        count = 0
        for block in blocks_of(page):
            if block.note.startswith("not run: "):
                continue
            if block.language == "text":
                line = missing(block.text, self.printed)
                assert line is None, f"{block.place}: {line!r} not in\n{self.printed}"
            elif block.language in RUN:
                self._run(block)
                count += 1
        return count

    def _run(self, block: Block) -> None:
        status = self._until_ctrl_c(block.text) if block.note == "until Ctrl-C" else self._typed(block)
        assert status == 0, f"{block.place}: exit status {status}\n{block.text}\n{self.printed}"

    def _typed(self, block: Block) -> int:
        with tempfile.NamedTemporaryFile("r") as place:
            words, given = {
                "sh": (["bash", "-ec", f"{block.text}\npwd > {place.name}"], ""),
                "sql": (["headrace", "sql"], block.text),
                "python": ([sys.executable, "-P", "-"], block.text),
            }[block.language]
            done = subprocess.run(
                words,
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
                env=self.environment,
                check=False,
            )
            self.folder = Path(place.read().strip() or self.folder)
        self.printed = done.stdout
        return done.returncode

    def _until_ctrl_c(self, text: str) -> int:
        """Run a command, press Ctrl-C when it has been running for a while, and return 0 if it ended for that."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self.environment,
            preexec_fn=take_sigint,
        )
        time.sleep(SECONDS)
        early = process.poll()
        process.send_signal(signal.SIGINT)
        self.printed, _ = process.communicate(timeout=120)
        return 0 if early is None and process.returncode in (0, 130, -signal.SIGINT) else process.returncode or 1
