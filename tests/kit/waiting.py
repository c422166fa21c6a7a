"""Something runs in the background, and a test waits for what it brings about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def running(run: Callable[[threading.Event], object], grace: float = 90) -> Iterator[None]:
    """Run something in a thread while the block lasts, then tell it to stop; it must, within `grace` seconds."""
    stopping = threading.Event()
    thread = threading.Thread(target=run, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(grace)
        assert not thread.is_alive()


def until(condition: Callable[[], object], seconds: float = 180, pause: float = 0.05) -> None:
    """Wait for something that must come true.

    Counted in looks, not by the clock: who waits may be stopped for a while together with what he waits for.
    """
    for _ in range(int(seconds / pause)):
        if condition():
            return
        time.sleep(pause)
    raise AssertionError("it did not happen")
