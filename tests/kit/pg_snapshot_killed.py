"""Child processes that are killed, by SIGKILL, in the middle of a first snapshot.

They come from a fork server, so that what they patch, and their death, are nobody else's.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalog_kit.forking import forking, preload

from headrace.sources.postgres.snapshot import snapshots
from headrace.sources.postgres.snapshot.copy_ledger import Ledger
from headrace.sources.postgres.wal.wal_capture import PostgresCapture
from kit.mirrored import Follower
from kit.pg_child import LIBRARIES

KILLED = -signal.SIGKILL
PAGES = 4
"""Pages of a part, so that small tables have several."""

preload(__name__, *LIBRARIES)


def begin_until(point: int, url: str, folder: Path, tables: tuple[str, ...], way: type[PostgresCapture]) -> int:
    """Begin to follow tables in a child that dies at its n-th point; the exit code.

    A point is where a part has been written, and where it is marked as whole; also a part of an earlier attempt.
    """
    child = forking().Process(target=_doomed, args=(point, url, folder, tables, way))
    child.start()
    child.join(600)
    code = child.exitcode
    child.close()
    assert code is not None
    return code


def _doomed(point: int, url: str, folder: Path, tables: tuple[str, ...], way: type[PostgresCapture]) -> None:
    points = itertools.count(1)

    def reach() -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    snapshots.PART_PAGES = PAGES
    _watch(Ledger, "done", reach)
    Follower(url, folder, *tables, way=way).begin()


def _watch(owner: type, name: str, reach: Callable[[], None]) -> None:
    original = getattr(owner, name)

    def watched(*arguments: Any) -> Any:
        reach()
        result = original(*arguments)
        reach()
        return result

    setattr(owner, name, watched)
