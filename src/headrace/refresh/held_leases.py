"""Holding leases while something runs: heartbeats in the background, release at the end."""

from __future__ import annotations

import datetime as dt
import os
import platform
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from headrace.catalog import Catalog, Lease
from headrace.errors import HeadraceError

TTL = dt.timedelta(seconds=30)
"""Time after which a silent owner's work may be taken over."""

HEARTBEAT_SECONDS = 8.0
"""Several fit into the time after which a lease is taken for abandoned, so that one may fail."""

WAIT_SECONDS = 0.1
"""Time between two tries to get leases that others hold."""

RELEASE_SECONDS = 1.0
"""Time between two tries to give leases back to a catalog that does not answer."""

Held = Callable[[], tuple[Lease, ...]]
"""Gives the leases that somebody holds, as last prolonged."""

_TOKENS: dict[int, str] = {}
"""By its number, a token of this process: former ones had the same number where a container was restarted."""


def new_owner() -> str:
    """Return a name for a holder of leases: host, place, process, its token, something unique."""
    return f"{_process()}:{uuid.uuid4().hex[:8]}"


def is_own(owner: str) -> bool:
    """Return whether an owner is of this process."""
    return owner.startswith(f"{_process()}:")


def _process() -> str:  # asked each time, as a process that was forked has a number of its own
    pid = os.getpid()
    return f"{_host()}:{pid}:{_TOKENS.setdefault(pid, uuid.uuid4().hex[:8])}"


def _host() -> str:
    return f"{socket.gethostname()}/{_place()}"


def _place() -> str:
    """Name the place where a number means one process; "" where that cannot be told.

    A host's name is not enough: containers may have one in common, and do not see each other's processes.
    """
    if platform.system() != "Linux":
        return f"{uuid.getnode():x}"
    try:
        return f"{os.stat('/proc/self/ns/pid').st_ino}-{_boot()}"
    except OSError:
        return ""


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def owner_is_dead(owner: str) -> bool:
    """Return whether an owner's process, in the place of this one, is gone; False when unknown."""
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if not _place() or host != _host() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return not is_own(owner)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def is_out_of_sight(owner: str) -> bool:
    """Return whether an owner is on a host of this name, but cannot be seen to live or be dead."""
    host = owner.partition(":")[0]
    return host.partition("/")[0] == socket.gethostname() and not (_place() and host == _host()) and not is_own(owner)


def _acquired(
    catalog: Catalog, resources: tuple[str, ...], until: float, given_up: Callable[[], bool]
) -> tuple[Lease, ...]:
    while True:
        try:
            return catalog.acquire(resources, new_owner(), TTL, is_dead=owner_is_dead)
        except HeadraceError as error:
            if error.code != "LEASE_HELD" or time.monotonic() >= until or given_up():
                raise
        time.sleep(WAIT_SECONDS)


@contextmanager
def holding_leases(
    catalog: Catalog, resources: Sequence[str], *, patience: float = 0.0, given_up: Callable[[], bool] = lambda: False
) -> Iterator[Held]:
    """Hold leases inside a block; the yielded function returns them as last prolonged.

    Losing a lease is not noticed here but where it matters: publishing checks the fencing tokens.

    Args:
        catalog: The catalog.
        resources: What to lease, all or none; of nothing nobody is asked.
        patience: Seconds to wait for others who hold one of them.
        given_up: Whether nobody wants them any more, so that the wait is over.

    Raises:
        EnvironmentFault: `LEASE_HELD`.
    """
    if not resources:
        yield tuple
        return
    leases = _acquired(catalog, tuple(resources), time.monotonic() + patience, given_up)
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
        try:
            catalog.release(current[0])
        except HeadraceError:  # or nobody could go on with these tables before they expire
            threading.Thread(target=_keep_releasing, args=(catalog, current[0]), daemon=True).start()


@contextmanager
def holding_leases_in_turn(catalog: Catalog, resources: Sequence[str], *, patience: float) -> Iterator[Held]:
    """Hold leases inside a block; where some are held by others, take one after the other.

    Of many tables that are refreshed all the time hardly ever all are free at once. All that wait like this take leases
    in one order, and nobody else waits while holding some, so that they never wait for each other in a circle.

    Args:
        catalog: The catalog.
        resources: What to lease.
        patience: Seconds to wait for others.

    Raises:
        EnvironmentFault: `LEASE_HELD`.
    """
    until = time.monotonic() + patience
    with ExitStack() as stack:
        try:
            held = [stack.enter_context(holding_leases(catalog, resources))]
        except HeadraceError as error:
            if error.code != "LEASE_HELD":
                raise
            held = []
            for resource in sorted(set(resources)):
                left = max(0.0, until - time.monotonic())
                held.append(stack.enter_context(holding_leases(catalog, [resource], patience=left)))
        yield lambda: tuple(lease for leases in held for lease in leases())


def _keep_releasing(catalog: Catalog, leases: Sequence[Lease]) -> None:
    """Release leases once the catalog answers again, unless they have expired."""
    until = time.monotonic() + TTL.total_seconds()
    while time.monotonic() < until:
        time.sleep(RELEASE_SECONDS)
        with suppress(HeadraceError):
            catalog.release(leases)
            return
