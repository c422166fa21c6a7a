"""What buttons begin ends, whatever breaks."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.serve.caller import address, wire
from headrace.web.actions import Actions


def test_a_server_that_refuses_runs_nothing_and_the_button_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    refused = json.dumps({"message": "The server of this project has other settings; this command runs by itself."})
    theirs.sendall(f"HTTP/1.0 409 Conflict\r\n\r\n{refused}".encode())
    theirs.shutdown(socket.SHUT_WR)
    monkeypatch.setattr(address, "connect", lambda _: ours)
    with theirs:
        status, message = Actions(tmp_path, SimpleNamespace())._command(["refresh"])  # type: ignore[arg-type]
    assert (status, message) == (1, "The server of this project has other settings; run the command in a terminal.")


@pytest.mark.parametrize("end", ["", 'data: {"text": "ha', 'event: exit\ndata: {"status": 0}'])
def test_events_end_where_the_connection_does(end: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + wire.encoded("out", {"text": "a"}) + end.encode())
        theirs.shutdown(socket.SHUT_WR)
        assert list(wire.Answer(ours).events()) == [("out", {"text": "a"})]


def test_an_action_that_breaks_has_failed(tmp_path: Path) -> None:
    def pause(_: object) -> None:
        raise KeyError("oid")

    actions = Actions(tmp_path, SimpleNamespace(pause=pause))  # type: ignore[arg-type]
    action = actions.begin("pause", "s.b", "somebody")
    assert action is not None
    end = time.monotonic() + 30
    while action.state == "running":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert action.state == "failed"
    assert "oid" in action.message
