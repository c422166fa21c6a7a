"""Landings in processes of their own: how much memory they take is theirs alone, and so is their death.

They come from a fork server, so that their peak does not begin at what the tests before them needed.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from catalog_kit.forking import forking, preload

from headrace.sources.capture import Landing
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture

UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in which the system counts memory."""

BEGINS = "begins"
"""Told by a child when it has all that it needs, and reads from then on."""

Way = type[PostgresCapture | AutoCapture]

LIBRARIES = ("psycopg", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")
"""What capture imports when it first needs it."""

preload(__name__, *LIBRARIES)


@dataclass(frozen=True, slots=True)
class Measured:
    """A landing that another process read.

    Args:
        landing: What it hands over; its files are there.
        before: Bytes of memory that the process had at most before it.
        peak: And when it was done.
    """

    landing: Landing
    before: int
    peak: int

    @property
    def grown(self) -> int:
        """What the landing took."""
        return self.peak - self.before


def land(
    way: Way,
    captured: Captured,
    folder: Path,
    position: Mapping[str, Any],
    *,
    limit: int = LIMIT,
    most: int = MOST,
    killed_after: float | None = None,
) -> Measured | None:
    """Land once in a child; nothing is acknowledged.

    Args:
        way: How the source is captured.
        captured: What is captured.
        folder: Where its rows are written.
        position: What is landed.
        limit: Messages of one landing, about.
        most: Changes that are held in memory at most.
        killed_after: Seconds of reading after which the child is killed, unless it is done by then.

    Returns:
        The landing; None where the child was killed, or what it did failed.
    """
    ours, theirs = forking().Pipe(duplex=False)
    child = forking().Process(target=_landed, args=(theirs, way, captured, folder, position, limit, most))
    child.start()
    theirs.close()
    try:
        assert ours.recv() == BEGINS
        with suppress(EOFError):
            if ours.poll(killed_after):
                measured: Measured = ours.recv()
                return measured
    finally:
        child.kill()
        child.join()
        child.close()
        ours.close()
    return None


def _landed(
    told: Connection, way: Way, captured: Captured, folder: Path, position: Mapping[str, Any], limit: int, most: int
) -> None:
    capture = way(captured, Spool(str(folder)), limit=limit, most=most)
    before = _peak()
    told.send(BEGINS)
    landing = capture.land(position)
    told.send(Measured(landing, before, _peak()))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
