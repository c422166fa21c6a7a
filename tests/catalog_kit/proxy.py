"""A network that breaks at COMMIT: before the server sees it, or after, when only the answer is lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_COMMIT = b"COMMIT\0"


class BreakingProxy:
    """Forwards TCP connections to PostgreSQL's socket; once armed, breaks the one that commits.

    Args:
        socket_folder: Folder of the server's Unix socket.
    """

    def __init__(self, socket_folder: str) -> None:
        self._server = f"{socket_folder}/.s.PGSQL.5432"
        self._armed: str | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, moment: str) -> None:
        """Break at the next COMMIT: `before` or `after` the server carries it out."""
        self._armed = moment

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:  # it is down
                    _cut(client, server)
                    continue
                threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
                threading.Thread(target=self._to_client, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self._armed == "before" and _COMMIT in data:
                    break
                if self._armed == "after" and _COMMIT in data:
                    self._armed = "answer"
                server.sendall(data)
        _cut(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if self._armed == "answer":
                    break
                client.sendall(data)
        _cut(client, server)


def _cut(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
