"""Kills another process in the middle of a refresh; run as a module, it is that process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import EnvironmentFault
from headrace.events import Event, StageStarted

WRITING = " staging."
"""In the titles of stages that write, before the name of what they write."""


@dataclass(frozen=True, slots=True)
class Killed:
    """A process that was killed.

    Args:
        pid: Its number.
        table: The stream table that it was refreshing.
        stage: The stage it was in.
    """

    pid: int
    table: str
    stage: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"pid": self.pid, "table": self.table, "stage": self.stage}


def kill_a_refresh(folder: Path) -> Killed:
    """Start a process that refreshes the project, and kill it (SIGKILL) as it begins to write.

    Raises:
        EnvironmentFault: `DEMO_CHILD_FAILED` when it ends before.
    """
    command = [sys.executable, "-m", "headrace.demo.killed", str(folder)]
    said = deque[str](maxlen=20)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            said.append(line)
            table, _, stage = line.strip().partition("\t")
            if WRITING in stage:
                child.send_signal(signal.SIGKILL)
                return Killed(child.pid, table, stage)
    raise EnvironmentFault(
        "DEMO_CHILD_FAILED",
        "The process that was to be killed in the middle of a refresh ended before it wrote.",
        detail="".join(said),
    )


def main(folder: str) -> None:
    """Refresh a project, telling each stage on a line of its own: table, tab, title."""
    import headrace

    def tell(event: Event) -> None:
        if isinstance(event, StageStarted):
            os.write(1, f"{event.table}\t{event.stage}\n".encode())

    with headrace.open(folder) as hr:
        hr.events.subscribe(tell)
        hr.refresh()


if __name__ == "__main__":
    main(sys.argv[1])
