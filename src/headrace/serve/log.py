"""Bounds the log of a background server, which its JVM writes into as well."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 2 * 2**20
KEPT_BYTES = 2**20
"""Of a log that has grown beyond the first, its end of the second length is kept."""


def bound(log: Path) -> None:
    """Shorten a log that has grown too long; whoever appends to it goes on doing so."""
    with suppress(OSError):
        size = log.stat().st_size
        if size <= MOST_BYTES:
            return
        with log.open("r+b") as file:
            file.seek(size - KEPT_BYTES)
            end = file.read()
            file.seek(0)
            file.truncate()
            file.write(b"(earlier lines were removed)\n" + end.partition(b"\n")[2])
            os.fsync(file.fileno())
