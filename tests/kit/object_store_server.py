"""moto's S3 with faults in front of it; run by the Python of `.venv-cluster`, which has nothing of Headrace.

`POST /-/faults` says what goes wrong from now on, `GET /-/faults` how many requests did.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Environment = dict[str, Any]
Start = Callable[..., Any]

WRITES = ("PUT", "POST", "DELETE")

REFUSALS = {
    "skewed": (
        "403 Forbidden",
        "RequestTimeTooSkewed",
        "The difference between the request time and the current time is too large.",
    ),
    "unknown": (
        "403 Forbidden",
        "InvalidAccessKeyId",
        "The AWS Access Key Id you provided does not exist in our records.",
    ),
    "expired": ("400 Bad Request", "ExpiredToken", "The provided token has expired."),
    "writes": ("403 Forbidden", "AccessDenied", "Access Denied"),
    "bucket": ("404 Not Found", "NoSuchBucket", "The specified bucket does not exist"),
}
"""What is answered, in the words of S3, by how requests are refused; `writes` are only those that write."""


class Faults:
    """What goes wrong.

    Args:
        store: Answers what goes well.
    """

    def __init__(self, store: Callable[[Environment, Start], Iterable[bytes]]) -> None:
        self._store = store
        self._wanted: dict[str, Any] = {}
        self._failed = 0
        self._chance = random.Random(7)
        self._lock = threading.Lock()

    def __call__(self, environ: Environment, start: Start) -> Iterable[bytes]:
        """Answer a request."""
        if environ["PATH_INFO"] == "/-/faults":
            return self._told(environ, start)
        time.sleep(self._wanted.get("seconds", 0))
        cut = self._happens("cut")
        refusal = None if cut else self._refusal(environ)
        if not cut and refusal is None:
            return self._store(environ, start)
        with self._lock:
            self._failed += 1
        if refusal is None:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            start("500 Nobody Hears It", [])
            return []
        status, code, message = refusal
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    def _told(self, environ: Environment, start: Start) -> Iterable[bytes]:
        body = str(self._failed).encode()
        if environ["REQUEST_METHOD"] == "POST":
            self._wanted = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            self._failed = 0
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    def _happens(self, how: str) -> bool:
        with self._lock:
            return self._chance.random() < self._wanted.get(how, 0)

    def _refusal(self, environ: Environment) -> tuple[str, str, str] | None:
        if self._happens("overloaded"):
            return "503 Slow Down", "SlowDown", "Please reduce your request rate."
        how = self._wanted.get("refuses")
        if how is None or (how == "writes" and environ["REQUEST_METHOD"] not in WRITES):
            return None
        return REFUSALS[how]


class Handler(WSGIRequestHandler):
    """Keeps connections, and quiet."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        """Say nothing of requests."""


def main() -> None:
    """Serve until the process is killed."""
    application = Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
