"""HTTP and server-sent events as far as a command needs them, over a connected socket.

`http.client` takes 25 ms to import, which is half of what a served command may spend on itself.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

Event = tuple[str, dict[str, object]]

MOST_BYTES = 64 * 2**20
"""A server takes no more than that in one request."""


def send(connection: socket.socket, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> None:
    """Send a request of HTTP/1.0: its answer is not cut into chunks, and ends the connection."""
    head = f"{method} {path} HTTP/1.0\r\nHost: headrace\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode("ascii") + body)


class Answer:
    """An answer whose head has been read.

    Args:
        connection: Where it comes from.

    Attributes:
        status: HTTP's status; 0 when the connection ended before there was one.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")
        words = self._file.readline().split()
        self.status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        while self._file.readline().strip():
            pass

    def document(self) -> dict[str, object]:
        """Return the body, a JSON object; an empty one where it is something else."""
        try:
            found = json.loads(self._file.read())
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def events(self) -> Iterator[Event]:
        """Yield server-sent events by name and data until the connection ends, within a line or not."""
        name = ""
        while (line := self._file.readline()).endswith(b"\n"):
            if line.startswith(b"event: "):
                name = line[7:].strip().decode("ascii")
            elif line.startswith(b"data: "):
                yield name, json.loads(line[6:])


def encoded(name: str, data: dict[str, object]) -> bytes:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n".encode("ascii")
