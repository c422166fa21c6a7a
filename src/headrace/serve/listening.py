"""A server's socket: one server per project, reached by its own user alone."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

import headrace
from headrace.serve.caller import address


class OneServer:
    """The right to be a project's server, and its socket.

    Args:
        root: The project folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._lock: IO[bytes] | None = None
        self._path: str | None = None

    def take(self) -> socket.socket | None:
        """Return a socket that listens; None when another process is the project's server.

        What a server left behind that was killed is removed.

        Raises:
            OSError: The project folder cannot be written, or is another user's.
        """
        folder = address.serve_folder(self._root)
        address.make_private(folder)
        lock = open(os.path.join(folder, address.LOCK), "ab")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        self._lock = lock
        with suppress(FileNotFoundError):  # first: it names this socket's path with another process's number
            os.unlink(os.path.join(folder, address.ADDRESS))
        try:
            return self._bind(short=False)
        except OSError:  # a file system without sockets
            return self._bind(short=True)

    def announce(self, **facts: object) -> None:
        """Say in the project folder where the server is."""
        given = {"socket": self._path, "pid": os.getpid(), "version": headrace.__version__, **facts}
        address.write_address(self._root, given)

    def leave(self) -> None:
        """Remove the socket and let another server take this one's place."""
        lock, self._lock = self._lock, None  # first: the thread that serves leaves, too
        if lock is None:
            return
        for path in (os.path.join(address.serve_folder(self._root), address.ADDRESS), self._path):
            with suppress(OSError):
                os.unlink(path or "")
        lock.close()

    def _bind(self, *, short: bool) -> socket.socket:
        path = self._path = address.socket_path(self._root, short=short)
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            former = os.umask(0o177)
            try:
                listener.bind(path)
            finally:
                os.umask(former)
            listener.listen(64)
        except OSError:
            listener.close()
            raise
        return listener


class OwnUserOnly(H11Protocol):
    """Speaks HTTP with the same user only; the folder's rights keep out others already."""

    def connection_made(self, transport: Any) -> None:
        """Begin, or hang up."""
        peer = transport.get_extra_info("socket")
        if address.peer_uid(peer) != os.getuid():
            transport.abort()
            self._refused = True
            return
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was begun."""
        if not getattr(self, "_refused", False):
            super().connection_lost(exc)
