"""Processes that write the sinks of a project and are killed, and readers of what they write.

python -m kit.sink_writer PROJECT
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from kit.child_process import killed_at_end
from kit.surviving_spark import with_kit


def killed_after(project: Path, seconds: float) -> bool:
    """Have a process write sinks, and kill it after so long; whether it was still at it."""
    command = [sys.executable, "-m", "kit.sink_writer", str(project)]
    with killed_at_end(subprocess.Popen(command, env=with_kit(), stdout=subprocess.PIPE, text=True)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(seconds)
        return child.poll() is None


@contextmanager
def looking(url: str, look: Callable[[psycopg.Connection], object]) -> Iterator[list[object]]:
    """A reader that looks on all the time, and connects again where a server was killed.

    Args:
        url: The database.
        look: Looks once.

    Yields:
        What it has seen.
    """
    seen: list[object] = []
    failed: list[BaseException] = []
    ended = threading.Event()

    def keep_looking() -> None:
        try:
            while not ended.is_set():
                away = suppress(psycopg.OperationalError, psycopg.InternalError)
                with away, psycopg.connect(url, autocommit=True) as db:
                    while not ended.wait(0.02):
                        seen.append(look(db))
                ended.wait(0.05)
        except BaseException as error:  # a thread's own would go unnoticed
            failed.append(error)

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
    assert not failed, failed


def main() -> None:
    import headrace
    from headrace.config import default_settings

    with headrace.open(default_settings(Path(sys.argv[1]))) as hr:
        print("ready", flush=True)
        while True:
            hr.sinks.write()


if __name__ == "__main__":
    main()
