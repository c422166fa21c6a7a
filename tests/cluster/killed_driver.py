"""Refreshes a project and kills itself when a stage begins whose title begins with the given words.

python killed_driver.py <project> <table> <words>
"""

from __future__ import annotations

import os
import signal
import sys

import headrace
from headrace.events import Event, StageStarted


def main(project: str, table: str, words: str) -> None:
    def heard(event: Event) -> None:
        if isinstance(event, StageStarted) and event.stage.startswith(words):
            print("dies at", event.stage, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    with headrace.open(project) as hr:
        hr.events.subscribe(heard)
        hr.refresh(table)
    print("survived")


if __name__ == "__main__":
    main(*sys.argv[1:])
