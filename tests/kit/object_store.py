"""A simulated S3 on loopback, moto in a process of its own, that fails when it is told to.

moto is installed apart (`scripts/setup-beside cluster`). In front of it, in the same process, stands what an S3 does on
a bad day: answers that the service is overloaded, late answers, and the refusals by which it tells who may do what.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECRET = "a-secret-that-nobody-may-read"
"""The secret key of everybody who may write."""

_SERVER = Path(__file__).with_name("object_store_server.py")


@dataclass(frozen=True)
class ObjectStore:
    """A running store.

    Args:
        port: Where it listens.
        pid: Its process.
    """

    port: int
    pid: int

    @property
    def endpoint(self) -> str:
        """Return where it is reached."""
        return f"http://127.0.0.1:{self.port}"

    def make(self, bucket: str) -> None:
        """Make a bucket."""
        self._ask("PUT", f"/{bucket}", signed=True)

    def objects(self, bucket: str) -> int:
        """Count the objects of a bucket, up to a thousand."""
        return self._ask("GET", f"/{bucket}?list-type=2", signed=True).count(b"<Key>")

    def behave(self, **faults: Any) -> None:
        """Fail in these ways from now on, and in no other.

        Args:
            faults: `overloaded`, the share of requests that are answered 503; `cut`, the share whose connection ends
                without an answer, as proxies do it; `seconds` by which each is late;
                `refuses`, how requests are refused: one of the names that the server knows.
        """
        self._ask("POST", "/-/faults", json.dumps(faults).encode())

    def failed(self) -> int:
        """Return how many requests failed since the last change of behaviour."""
        return int(self._ask("GET", "/-/faults"))

    def settings(self) -> str:
        """Return a project's section `[storage]`; it gives up sooner than by default, which is after minutes."""
        return (
            f'[storage]\n"client.region" = "us-east-1"\n"s3.endpoint" = "{self.endpoint}"\n'
            '"s3.path-style-access" = true\n"s3.access-key-id" = "writer"\n'
            '"s3.secret-access-key" = "env:TEST_S3_SECRET"\n"s3.retry.num-retries" = 4\n'
            '"s3.retry.min-wait-ms" = 50\n"s3.retry.max-wait-ms" = 500\n'
        )

    def _ask(self, method: str, path: str, body: bytes | None = None, *, signed: bool = False) -> bytes:
        request = urllib.request.Request(self.endpoint + path, data=body, method=method)
        if signed:
            request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=writer/20260101/us-east-1/s3/aws4_request")
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: bytes = answer.read()
            return found


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run a store while the block lasts.

    Args:
        folder: Where it writes its log.
    """
    python = Path(os.environ.get("HEADRACE_CLUSTER_PYTHON") or ".venv-cluster/bin/python")
    with (folder / "object-store.log").open("w") as log:
        process = subprocess.Popen([str(python), "-I", str(_SERVER)], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("listening on "), (folder / "object-store.log").read_text()[-3000:]
        yield ObjectStore(int(said.split()[-1]), process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
