"""Children are forked off a process that has imported what they need, and has no threads: forks would lack these."""

from __future__ import annotations

from multiprocessing import forkserver

import psutil
from catalog_kit import killed
from catalog_kit.forking import forking, lacks
from kit import pg_child, pg_snapshot_killed, pg_soak

KITS = tuple(kit.__name__ for kit in (killed, pg_child, pg_snapshot_killed, pg_soak))


def test_children_have_all_kits_and_the_libraries_of_these() -> None:
    forking()
    assert not lacks(*KITS, *pg_child.LIBRARIES, "alembic.command")
    assert psutil.Process(forkserver._forkserver._forkserver_pid).num_threads() == 1  # type: ignore[attr-defined]
