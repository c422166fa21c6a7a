"""A server on loopback that takes what is sent to it: quickly, never, or with an error."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What arrived.

    Args:
        url: Where the server listens.
        status: What it answers.
        open: While it is not set, the server keeps its callers waiting.
        requests: Paths, headers and bodies that arrived.
    """

    url: str = ""
    status: int = 200
    open: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The bodies as JSON."""
        return [json.loads(body) for _, _, body in self.requests]


@contextmanager
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    found.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            found.open.wait(30)
            found.requests.append((self.path, dict(self.headers), body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        found.open.set()
        server.shutdown()
        server.server_close()
