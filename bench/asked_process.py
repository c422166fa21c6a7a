"""A process of a bench that works once for each line of its input, and answers with a line of JSON each time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[1]


class AskedProcess:
    """Such a process, seen from the one that started it.

    Args:
        command: What is started, in the project's folder.
        environment: Variables beyond those of this process.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, line: str = "") -> Any:
        """Have it do its work once, as a line says, and return what it answers."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        """Return its next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a session of the bench has ended; its error is above")
        return json.loads(line)

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._process.communicate()
