"""Has threads end that wait for a server, when nobody waits for them any more.

A thread that waits for a server's answer notices no event. So what opens a connection says how to break it, and whoever
gives up has that done: the thread fails as when the server had gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Node = TypeVar("Node")
T = TypeVar("T")

SLICE_SECONDS = 0.2
"""Length of one wait for threads: an interrupt of a thread other than the main one is noticed between two."""


class _Interruption:
    """Breaks what threads have open, and what they open afterwards.

    Attributes:
        happened: Whether it has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[object, Callable[[], None]] = {}
        self.happened = False

    def happen(self) -> None:
        """Break everything."""
        with self._lock:
            self.happened = True
            for end in self._open.values():
                end()

    @contextmanager
    def of(self, end: Callable[[], None]) -> Iterator[None]:
        """Have something be broken that is open until the end of the block."""
        key = object()
        with self._lock:
            self._open[key] = end
            if self.happened:
                end()
        try:
            yield
        finally:
            with self._lock:
                del self._open[key]


_CURRENT: ContextVar[_Interruption | None] = ContextVar("headrace_interruption", default=None)
"""The interruption of the current thread, and of those it starts in a copy of its context."""


def is_interrupted() -> bool:
    """Return whether the thread was interrupted: whatever fails then does because of that."""
    interruption = _CURRENT.get()
    return interruption is not None and interruption.happened


@contextmanager
def interruptible(end: Callable[[], None]) -> Iterator[None]:
    """Have what is open until the end of the block be broken where its thread is interrupted.

    Args:
        end: Breaks it, from another thread; at once, and without an error.
    """
    interruption = _CURRENT.get()
    if interruption is None:
        yield
        return
    with interruption.of(end):
        yield


def side_by_side(
    one: Callable[[Node], T], nodes: Iterable[Node], most: int, ended: threading.Event | None = None
) -> dict[Node, T]:
    """Do something for several nodes in threads.

    They are interrupted where one of them fails, or the wait for them, or the thread that waits.

    Args:
        one: Does it.
        nodes: The nodes.
        most: So many at the same time.
        ended: Set when they are interrupted.
    """
    interruption = _Interruption()

    def within(node: Node) -> T:
        _CURRENT.set(interruption)
        return one(node)

    with (
        interruptible(interruption.happen),
        ThreadPoolExecutor(most, thread_name_prefix="headrace-node") as pool,
    ):
        try:
            running = {node: pool.submit(within, node) for node in nodes}
            left = True
            while left:
                left = bool(wait(running.values(), SLICE_SECONDS, FIRST_EXCEPTION).not_done)
                done = {node: future.result() for node, future in running.items() if future.done()}
            return done
        except BaseException:  # the pool waits for its threads
            pool.shutdown(wait=False, cancel_futures=True)
            if ended is not None:
                ended.set()
            interruption.happen()
            raise
