"""`headrace run` until it is killed, with everything that happens written to a file.

    python chaotic.py <project> <log>

Each event, stages too, goes to the log as a line of JSON, with the time: what a table was doing when, whoever did it.
SIGUSR1 kills the process's Spark.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import headrace
from headrace.errors import EnvironmentFault
from headrace.events import Event, fields_of, kind_of


def main(project: str, log: str) -> None:
    signal.signal(signal.SIGUSR1, kill_spark)
    while True:
        try:
            return run(project, log)
        except EnvironmentFault:  # a connection was cut while it began; one later is the scheduler's to bear
            if Path(log).exists() and f'"process": {os.getpid()}' in Path(log).read_text(encoding="utf-8"):
                raise
        time.sleep(0.2)


def run(project: str, log: str) -> None:
    with headrace.open(project) as hr, Path(log).open("a", encoding="utf-8") as file:

        def tell(event: Event) -> None:
            line = {"at": time.time(), "process": os.getpid(), "event": kind_of(event), **fields_of(event)}
            file.write(json.dumps(line, default=str) + "\n")
            file.flush()

        hr.events.subscribe(tell)
        hr.run()


def kill_spark(*_: object) -> None:
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
