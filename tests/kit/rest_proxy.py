"""An HTTP proxy before a REST catalog: takes abilities away from it, notes what changes it, and comes in between."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Request = tuple[str, str]
"""Method and path."""

Refusal = tuple[int, str, str]
"""Status, the error's type and its message."""


class RestProxy:
    """Forwards requests.

    Args:
        server: Where to.
        hidden: Ends of paths of endpoints that are not there.

    Attributes:
        changes: Requests that changed something, as they came.
        before: Called before such a request is sent on; what is not None is answered in place of the server's answer:
            a status, or 0 to cut the connection.
        after: Called when the server has done such a request; what is not None is answered in place of what it said.
        twice: Whether such a request is sent on twice, as by a proxy that repeats what was not answered.
        refuses: An error of Iceberg's specification that every request gets from now on; None for none.
    """

    def __init__(self, server: str, hidden: tuple[str, ...] = ()) -> None:
        self._server = urlsplit(server)
        self._hidden = hidden
        self.changes: list[Request] = []
        self.before: Callable[[Request], int | None] = lambda _: None
        self.after: Callable[[Request], int | None] = lambda _: None
        self.twice: Callable[[Request], bool] = lambda _: False
        self.refuses: Refusal | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.forward(self)

            do_POST = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def forward(self, asked: BaseHTTPRequestHandler) -> None:
        """Answer a request as the server does, where it has such an endpoint."""
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
        path = asked.path.partition("?")[0]
        if path.endswith(self._hidden) if self._hidden else False:
            _answer(asked, 404, json.dumps({"error": {"type": "NoSuchEndpoint", "message": path}}).encode())
            return
        if self.refuses is not None:
            status, kind, message = self.refuses
            error = {"message": message, "type": kind, "code": status}
            _answer(asked, status, json.dumps({"error": error}).encode())
            return
        changing = asked.command in ("POST", "DELETE")
        if changing:
            if (instead := self.before((asked.command, path))) is not None:
                _answer_instead(asked, instead)
                return
            self.changes.append((asked.command, path))
            if self.twice((asked.command, path)):
                self._ask(asked, body)
        status, data = self._ask(asked, body)
        if changing and (instead := self.after((asked.command, path))) is not None:
            _answer_instead(asked, instead)
            return
        if path.endswith("/v1/config"):
            config = json.loads(data)
            listed = config.get("endpoints") or []
            config["endpoints"] = [each for each in listed if not each.endswith(self._hidden or ("\0",))]
            data = json.dumps(config).encode()
        _answer(asked, status, data)

    def _ask(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(str(self._server.hostname), self._server.port, timeout=60)
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in ("host", "connection")}
        connection.request(asked.command, self._server.path + asked.path, body or None, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def close(self) -> None:
        """End it."""
        self._http.shutdown()
        self._http.server_close()


def _answer_instead(asked: BaseHTTPRequestHandler, status: int) -> None:
    if status == 0:
        asked.connection.shutdown(socket.SHUT_RDWR)
    else:
        _answer(asked, status, b"{}")


def _answer(asked: BaseHTTPRequestHandler, status: int, data: bytes) -> None:
    asked.send_response(status)
    if status != 204:
        asked.send_header("Content-Type", "application/json")
        asked.send_header("Content-Length", str(len(data)))
    asked.end_headers()
    if status != 204 and asked.command != "HEAD":
        asked.wfile.write(data)


@contextmanager
def rest_proxy(server: str, *hidden: str) -> Iterator[RestProxy]:
    """Run a proxy while the block lasts."""
    proxy = RestProxy(server, hidden)
    try:
        yield proxy
    finally:
        proxy.close()
