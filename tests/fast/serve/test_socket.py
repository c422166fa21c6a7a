"""The socket: private, short enough, and one server's at a time."""

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from headrace.serve.caller import address
from headrace.serve.listening import OneServer


@pytest.fixture(params=["shop", "/".join(["a-folder-with-a-long-name"] * 8)], ids=["short", "deep"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / request.param
    folder.mkdir(parents=True)
    return folder


def test_a_server_is_reached_and_nobody_else_may_enter(root: Path) -> None:
    one = OneServer(root)
    listener = one.take()
    assert listener is not None
    with listener:
        one.announce(kind="background")
        path = Path(str((address.read_address(str(root)) or {})["socket"]))
        assert len(os.fsencode(path)) <= address.SHORT_ENOUGH
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        connection = address.connect(str(root))
        assert connection is not None
        assert address.peer_uid(connection) == os.getuid()
        connection.close()
        one.leave()
    assert not path.exists()
    assert address.connect(str(root)) is None


def test_there_is_one_server_and_what_a_killed_one_left_does_not_matter(root: Path) -> None:
    first = OneServer(root)
    listener = first.take()
    assert listener is not None
    first.announce(kind="background")
    assert OneServer(root).take() is None
    listener.close()  # as the system does when the process is killed: the files stay
    first._lock.close()  # type: ignore[union-attr]
    assert address.read_address(str(root)) is not None
    assert address.connect(str(root)) is None
    second = OneServer(root)
    again = second.take()
    assert again is not None
    assert address.connect(str(root)) is None  # though it listens where the killed one did: that one's number is told
    second.announce(kind="background")
    connection = address.connect(str(root))
    assert connection is not None
    connection.close()
    again.close()
    second.leave()


def test_many_at_once_are_one_server(root: Path) -> None:
    taken: list[socket.socket] = []
    servers = [OneServer(root) for _ in range(8)]
    start = threading.Barrier(len(servers))

    def take(server: OneServer) -> None:
        start.wait()
        if (listener := server.take()) is not None:
            taken.append(listener)

    threads = [threading.Thread(target=take, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    taken[0].close()
    for server in servers:
        server.leave()


def test_the_place_is_left_once_by_two_threads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = OneServer(root)
    listener = one.take()
    assert listener is not None
    listener.close()
    unlink = os.unlink

    def in_between(path: str) -> None:
        one.leave()  # as the thread that serves does at the same moment
        unlink(path)

    monkeypatch.setattr(os, "unlink", in_between)
    one.leave()
    monkeypatch.undo()
    again = OneServer(root).take()
    assert again is not None
    again.close()


def test_another_users_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "serve"
    folder.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError):
        address.make_private(str(folder))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"socket": 3}', '{"socket": "/nowhere"}'])
def test_an_address_that_says_nothing_is_no_server(tmp_path: Path, text: str) -> None:
    folder = Path(address.serve_folder(str(tmp_path)))
    folder.mkdir(parents=True)
    (folder / address.ADDRESS).write_text(text)
    assert address.connect(str(tmp_path)) is None
