"""Masters and Connect servers that do not answer, by sockets that behave like them."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from headrace.errors import EnvironmentFault
from headrace.spark.starting import reachable


@contextmanager
def server(serve: Callable[[socket.socket], object]) -> Iterator[int]:
    """A server that does something with each connection; gives its port."""
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection = listening.accept()[0]
                    kept.append(connection)
                    serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


def settings_frame(connection: socket.socket) -> None:
    assert connection.recv(64).startswith(b"PRI * HTTP/2.0")
    connection.sendall(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))


@pytest.mark.parametrize("options", ["", "/;use_ssl=true", "/;token=secret"])
def test_a_connect_server_that_never_answers(monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    monkeypatch.setattr(reachable, "ANSWER_SECONDS", 0.3)
    began = time.monotonic()
    with server(lambda _: None) as port, pytest.raises(EnvironmentFault) as caught:
        reachable.refuse_unreachable(f"sc://127.0.0.1:{port}{options}")
    assert time.monotonic() - began < 15
    error = caught.value
    assert (error.code, error.retryable) == ("SPARK_UNAVAILABLE", True)
    assert error.message == f"Nothing answers at sc://127.0.0.1:{port}."
    assert error.detail == f"127.0.0.1:{port}: it takes connections, but answers none"


def test_all_of_it_takes_less_than_fifteen_seconds() -> None:
    assert reachable.PATIENCE_SECONDS + reachable.ANSWER_SECONDS < 15


def test_a_server_that_hangs_up() -> None:
    with server(lambda connection: connection.shutdown(socket.SHUT_WR)) as port:
        with pytest.raises(EnvironmentFault, match="Nothing answers") as caught:
            reachable.refuse_unreachable(f"sc://127.0.0.1:{port}")
        assert "ends connections without an answer" in (caught.value.detail or "")
        reachable.refuse_unreachable(f"spark://127.0.0.1:{port}")  # a master says nothing before it is asked


def test_a_server_that_answers() -> None:
    with server(settings_frame) as port:
        reachable.refuse_unreachable(f"sc://127.0.0.1:{port}/;user_id=me")
        reachable.refuse_unreachable(f"sc://localhost:{port}/;token=secret")  # there PySpark does without TLS


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1", "spark://127.0.0.1:1", "k8s://https://127.0.0.1:1"])
def test_a_port_where_nobody_listens(address: str) -> None:
    with pytest.raises(EnvironmentFault, match="SPARK_UNAVAILABLE") as caught:
        reachable.refuse_unreachable(address)
    assert "127.0.0.1:1: Connection refused" in (caught.value.detail or "")


def test_other_masters_are_let_through() -> None:
    for address in ("local[2]", "yarn"):
        reachable.refuse_unreachable(address)
