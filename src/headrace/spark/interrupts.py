"""Cancels what Spark runs without breaking the connection to the JVM.

Python waits for the JVM in a read of a socket. An exception raised in there leaves the answer unread, and the next
question would get it; PySpark's own handler of Ctrl-C asks the JVM something in the middle of it. So jobs are cancelled
by another thread, over a connection of its own, and the waiting thread is interrupted once it is out.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_SECONDS = 0.02
"""Time between two looks whether a thread is out of the JVM's hands."""
AGAIN_SECONDS = 0.5
"""A thread that is still in there may have started another job meanwhile."""
PATIENCE_SECONDS = 20.0
"""A JVM that does not let go by then is taken for hung."""

_MOMENT_SECONDS = 0.001
"""Time between two looks whether a thread has begun."""

_START = threading.Thread.start.__code__

_INSIDE = frozenset({"py4j", "pyspark"})

_PENDING: set[int] = set()
"""Threads that are about to be interrupted."""


def await_interrupt() -> None:
    """Wait for an interrupt on its way to this thread, whose consequence an error is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while threading.get_ident() in _PENDING and time.monotonic() < end:
        time.sleep(STEP_SECONDS)


def is_inside(frame: FrameType | None) -> bool:
    """Return whether a frame was called by one that waits for Spark."""
    while frame is not None:
        if _INSIDE.intersection(PurePath(frame.f_code.co_filename).parts):
            return True
        frame = frame.f_back
    return False


def interrupt_session(session: SparkSession) -> None:
    """Cancel what a session runs, and nothing of other sessions; never fails."""
    with suppress(Exception):  # it may be over, or the JVM gone
        session.interruptAll()


def interrupt_thread(thread: int, cancel: Callable[[], object], *, gone: Callable[[], bool]) -> None:
    """Cancel a thread's jobs and raise `KeyboardInterrupt` in it.

    Python raises it at the thread's next instruction. A thread that asked the JVM something just then gets there when
    the JVM answers, so what it runs is cancelled until it is gone.

    Args:
        thread: The thread's identity.
        cancel: Cancels its jobs.
        gone: Whether it has ended, or must not be interrupted any more.
    """

    def inside() -> bool:
        return is_inside(sys._current_frames().get(thread))

    _PENDING.add(thread)
    _cancel_until(lambda: gone() or not inside(), cancel)
    _PENDING.discard(thread)
    if gone():
        return
    raise_in_thread(thread)
    _cancel_until(gone, lambda: cancel() if inside() else None)


def raise_in_thread(thread: int) -> None:
    """Raise `KeyboardInterrupt` at a thread's next instruction.

    Until a thread that was just created runs, it has the identity of the one that starts it, in Python 3.11: it would
    get the exception, and end before it says that it has begun, for which the other one waits. So nothing is raised
    while one is being started.

    Args:
        thread: The thread's identity.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while _is_starting_another(sys._current_frames().get(thread)) and time.monotonic() < end:
        time.sleep(_MOMENT_SECONDS)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def _is_starting_another(frame: FrameType | None) -> bool:
    """Return whether a frame was called by one that starts a thread, which does not run yet."""
    while frame is not None:
        if frame.f_code is _START:
            return not frame.f_locals["self"]._started.is_set()
        frame = frame.f_back
    return False


def settle_sigint(former: object, cancel: Callable[[], object]) -> None:
    """Handle Ctrl-C after Spark has started: as it was handled before, or in place of PySpark.

    Args:
        former: The handler from before.
        cancel: Cancels all jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    own = former is signal.default_int_handler
    signal.signal(signal.SIGINT, _Interrupts(cancel).handle if own else former)  # type: ignore[arg-type]


class _Interrupts:
    """Handles Ctrl-C: at once where Python runs, else when the JVM has let go.

    A second one is handled at once.
    """

    def __init__(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel
        self._main = threading.main_thread().ident or 0
        self._cancelling = False  # a thread is at it
        self._delivering = False  # this signal comes from that thread

    def handle(self, _number: int, frame: FrameType | None) -> None:
        """Handle the signal, in the main thread."""
        delivered, self._delivering = self._delivering, False
        if not is_inside(frame) or (self._cancelling and not delivered):
            self._cancelling = False
            _PENDING.discard(self._main)
            raise KeyboardInterrupt
        self._cancelling = True
        _PENDING.add(self._main)
        threading.Thread(target=self._cancel_and_deliver, name="headrace-interrupt", daemon=True).start()

    def _cancel_and_deliver(self) -> None:
        def over() -> bool:
            return not self._cancelling or not is_inside(sys._current_frames().get(self._main))

        if not _cancel_until(over, self._cancel) or not self._cancelling:
            return
        self._delivering = True
        signal.pthread_kill(self._main, signal.SIGINT)


def _cancel_until(done: Callable[[], bool], cancel: Callable[[], object]) -> bool:
    """Cancel jobs until a thread can be interrupted; return whether it can."""
    end, next_try = time.monotonic() + PATIENCE_SECONDS, 0.0
    while not done() and (now := time.monotonic()) < end:
        if now >= next_try:
            cancel()
            next_try = time.monotonic() + AGAIN_SECONDS
        time.sleep(STEP_SECONDS)
    return done()
