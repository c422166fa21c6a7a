"""A process that delivers to a sink and is killed, or has its connection ended, at a given stage.

    python -m kit.sink_killed URL SINK KEY STAGE HOW [PLACEMENT]

It plays the history of `stream`, one version after the other, from wherever the target stands.
"""

from __future__ import annotations

import os
import signal
import sys

import psycopg

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
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


def main() -> None:
    url, sink, key, stage, how, *placement = sys.argv[1:]
    said = {"placement": placement[0]} if placement else {}
    source, of, at = stream(), options(url, key=["id"] if key == "key" else [], **said), int(stage)
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

    for version in range(VERSIONS):
        try:
            deliver(of, source.delivery(sink, version=version), tell)
        except HeadraceError as error:
            if error.code != "SINK_LOST":
                raise
            deliver(of, source.delivery(sink, version=version), tell)
    print("done", len(told))


if __name__ == "__main__":
    main()
