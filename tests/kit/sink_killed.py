"""A process that delivers to a sink and is killed, or has its connection ended, at a given stage.

    python -m kit.sink_killed URL SINK KEY STAGE HOW [PLACEMENT]

It plays the history of `stream`, one version after the other, from wherever the target stands.
"""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import psycopg

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK
from kit.sink_rows import FakeStream, deliver, options

VERSIONS = 6


def stream() -> FakeStream:
    """Rows that come, change and go; every version changes something."""
    of = FakeStream((Column("id", "int"), Column("v", "string")), [[((n, "0"), 1) for n in range(5)]], batch=2)
    for version in range(1, VERSIONS):
        of.log.append(
            [
                ((version % 5, str(version - 5 if version >= 5 else 0)), -1),
                ((version % 5, str(version)), 1),
                ((100 + version, "new"), 1),
            ]
        )
        if version > 1:
            of.log[-1] = [*of.log[-1], ((99 + version, "new"), -1)]
    return of


def play(url: str, sink: str, key: str, at: int, how: str, **said: str) -> int:
    """Deliver every version; end this process or its connections at a stage, -1 for never.

    Returns:
        How many stages there were.
    """
    source, of = stream(), options(url, key=["id"] if key == "key" else [], **said)
    told: list[str] = []

    def tell(word: str) -> None:
        told.append(word)
        if len(told) - 1 != at:
            return
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        with psycopg.connect(url, autocommit=True) as other:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headrace sink'"
            other.execute(others + " AND datname = current_database()")

    with POSTGRES_SINK.writing(of, lambda _: None) as target:
        stands = target.position(sink)
    for version in range(0 if stands is None else stands.version, VERSIONS):
        try:
            deliver(of, source.delivery(sink, version=version), tell)
        except HeadraceError as error:
            if error.code != "SINK_LOST":
                raise
            deliver(of, source.delivery(sink, version=version), tell)
    return len(told)


def tell_stages(told: Connection, *given: Any) -> None:
    """Do the same for another process, which is told how many stages there were."""
    told.send(play(*given))


def main() -> None:
    url, sink, key, stage, how, *placement = sys.argv[1:]
    print("done", play(url, sink, key, int(stage), how, **({"placement": placement[0]} if placement else {})))


if __name__ == "__main__":
    main()
