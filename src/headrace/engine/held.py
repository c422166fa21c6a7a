"""Holding leases while something runs: heartbeats in the background, release at the end."""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from headrace.catalog import Catalog, Lease
from headrace.errors import HeadraceError

TTL = dt.timedelta(seconds=30)
"""Time after which a silent owner's work may be taken over."""

HEARTBEAT_SECONDS = 8.0

_PROCESS = f"{socket.gethostname()}:{os.getpid()}"


def new_owner() -> str:
    """A name for a holder of leases: host, process, and something unique."""
    return f"{_PROCESS}:{uuid.uuid4().hex[:8]}"


def owner_is_dead(owner: str) -> bool:
    """Whether an owner ran on this host in a process that no longer exists; False when that cannot be told."""
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def held(catalog: Catalog, resources: Sequence[str]) -> Iterator[Callable[[], tuple[Lease, ...]]]:
    """Hold leases inside a block; the yielded function returns them as last prolonged.

    Losing a lease is not noticed here but where it matters: publishing checks the fencing tokens.

    Raises:
        EnvironmentFault: `LEASE_HELD`.
    """
    leases = catalog.acquire(tuple(resources), new_owner(), TTL, is_dead=owner_is_dead)
    stop = threading.Event()
    current = [leases]

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            with suppress(HeadraceError):
                current[0] = catalog.heartbeat(current[0], TTL)

    thread = threading.Thread(target=beat, name="headrace-heartbeat", daemon=True)
    thread.start()
    try:
        yield lambda: current[0]
    finally:
        stop.set()
        thread.join()
        with suppress(HeadraceError):
            catalog.release(current[0])
