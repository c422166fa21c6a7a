"""Threads that wait for servers which say nothing, and whoever waits for those threads."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from headrace.sources.interruption import interruptible, side_by_side
from headrace.spark.interrupts import raise_in_thread

LONG = 20.0
"""Seconds after which a server that hangs is given up here."""


class Hanging:
    """A server that takes a connection and says nothing."""

    def __init__(self) -> None:
        self.waiting = threading.Event()

    def ask(self) -> None:
        here, there = socket.socketpair()
        with here, there, interruptible(lambda: here.shutdown(socket.SHUT_RDWR)):
            here.settimeout(LONG)
            self.waiting.set()
            assert here.recv(1) == b""
        raise ConnectionError("the server is gone")


@pytest.mark.parametrize("nodes", [("fails", "hangs"), ("hangs", "fails")])
def test_a_node_that_fails_ends_the_wait_for_one_that_hangs(nodes: tuple[str, ...]) -> None:
    server, begun = Hanging(), time.monotonic()

    def one(node: str) -> None:
        if node == "hangs":
            server.ask()
        assert server.waiting.wait(LONG)
        raise LookupError(node)

    with pytest.raises(LookupError, match="fails"):
        side_by_side(one, nodes, 2)
    assert time.monotonic() - begun < LONG


def test_nodes_within_a_node_are_interrupted_with_it() -> None:
    server, begun = Hanging(), time.monotonic()

    def one(node: str) -> None:
        if node == "cluster":
            side_by_side(lambda _: server.ask(), [0], 1)
        assert server.waiting.wait(LONG)
        raise LookupError(node)

    with pytest.raises(LookupError):
        side_by_side(one, ["cluster", "fails"], 2)
    assert time.monotonic() - begun < LONG


def test_an_interrupt_of_the_thread_that_waits_ends_the_wait() -> None:
    """As of a command that a server of commands runs in a thread: it comes between two instructions."""
    server, ended, begun = Hanging(), list[BaseException](), time.monotonic()

    def command() -> None:
        try:
            side_by_side(lambda _: server.ask(), ["hangs"], 1)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=command)
    thread.start()
    assert server.waiting.wait(LONG)
    raise_in_thread(thread.ident or 0)
    thread.join()
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert time.monotonic() - begun < LONG


def test_results_are_of_their_nodes() -> None:
    assert side_by_side(lambda node: node * 2, range(20), 3) == {node: node * 2 for node in range(20)}
