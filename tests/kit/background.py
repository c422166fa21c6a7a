"""Something that goes on in a thread while a test looks at it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_background(work: Callable[[threading.Event], object], patience: float = 300.0) -> Iterator[None]:
    """Run something in a thread until the block ends; what it raises is raised here.

    Args:
        work: Ends soon once the event that it is given is set.
        patience: How many seconds it may take to end.
    """
    stopping, raised = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            work(stopping)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(patience)
    assert not thread.is_alive()
    assert not raised, raised
