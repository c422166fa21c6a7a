"""Threads that wait for Spark are interrupted, whenever the interrupt hits them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headrace.spark.interrupts import interrupt_thread, raise_in_thread


def test_a_thread_that_asks_spark_something_as_it_is_interrupted() -> None:
    """Its exception waits for the JVM, which answers once the job that was just begun is cancelled."""
    asks, asking, answered = threading.Event(), threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        asks.wait()
        asking.set()
        try:
            as_py4j(answered.wait)
            ended.append("answered")
        except KeyboardInterrupt:
            ended.append("interrupted")

    def gone() -> bool:
        """Have the thread go on between the last look at where it is and the interrupt."""
        looks.append(True)
        if len(looks) == 2:
            asks.set()
            asking.wait()
        return not thread.is_alive()

    looks: list[bool] = []
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    interrupt_thread(thread.ident or 0, answered.set, gone=gone)
    thread.join(60)
    assert ended == ["interrupted"]


def test_a_thread_that_starts_others_is_interrupted_itself() -> None:
    for _ in range(200):
        ended: list[str] = []

        def work(ended: list[str] = ended) -> None:
            try:
                while True:
                    other = threading.Thread(target=str)
                    other.start()
                    other.join()
            except KeyboardInterrupt:
                ended.append("interrupted")

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        raise_in_thread(thread.ident or 0)
        thread.join(10)
        assert ended == ["interrupted"]


def as_py4j(call: Callable[[], object]) -> None:
    """Call something from a frame of a file of Py4J."""
    exec(compile("call()", "/site-packages/py4j/clientserver.py", "exec"), {"call": call})
