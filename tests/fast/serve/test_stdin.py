"""What a served command reads from stdin: all of it, or none and a word why."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from headrace.serve.caller import call, wire
from headrace.serve.listening import OneServer
from headrace.serve.request_body import BodyTooLong, body_of
from headrace.serve.routes import _Answers


def request(*parts: bytes) -> Request:
    left = list(parts)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return Request({"type": "http", "method": "POST", "headers": [], "path_params": {"id": "1"}}, receive)


def test_a_body_is_taken_up_to_a_length() -> None:
    assert asyncio.run(body_of(request(b"ab", b"cd"), 4)) == b"abcd"
    with pytest.raises(BodyTooLong):
        asyncio.run(body_of(request(b"ab", b"cd", b"e"), 4))


def test_a_server_says_that_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 4)
    handed: list[bytes] = []
    command = SimpleNamespace(id="1", hand=handed.append)
    routes = _Answers(SimpleNamespace(found=lambda _: command))  # type: ignore[arg-type]
    assert asyncio.run(routes.stdin(request(b"abcd"))).status_code == 200
    assert asyncio.run(routes.stdin(request(b"abcde"))).status_code == 413
    assert handed == [b"abcd"]


@pytest.mark.parametrize(("stdin", "status", "asked"), [(b"abcd", 0, ["stdin"]), (b"abcde", 1, ["cancel"])])
def test_a_caller_sends_no_more_than_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stdin: bytes,
    status: int,
    asked: list[str],
) -> None:
    """Of one that is too long the server hears that its reader is to be cancelled."""
    monkeypatch.setattr(wire, "MOST_BYTES", 4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    one, heard = OneServer(tmp_path), list[str]()
    listener = one.take()
    assert listener is not None
    listener.setblocking(True)

    def serve() -> None:
        for _ in asked:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as file:
                heard.append(file.readline().split()[1].decode().rpartition("/")[2])
                while file.readline().strip():
                    pass
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{}")

    ours, theirs = socket.socketpair()
    with listener, ours, theirs:
        one.announce(kind="background")
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        events = [("started", {"id": "1"}), ("stdin", {}), ("exit", {"status": 0})]
        lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events]
        theirs.sendall(("HTTP/1.0 200 OK\r\n\r\n" + "".join(lines)).encode())
        theirs.shutdown(socket.SHUT_WR)
        assert call.follow(str(tmp_path), wire.Answer(ours), as_json=False) == status
        thread.join(60)
    assert heard == asked
    assert ("INPUT_TOO_LONG" in capsys.readouterr().err) == (status == 1)
