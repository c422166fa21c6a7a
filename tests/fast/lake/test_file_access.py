"""Files of an S3 read without Spark: from a server that is overloaded now and then, or refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace.errors import EnvironmentFault
from headrace.lake.files import file_access
from headrace.lake.files.file_access import reach_by
from headrace.lake.metadata import read_json

CONTENT = b'{"a": 1}'


@dataclass
class Store:
    """As much of S3 as reading one file takes.

    Args:
        failures: Answers to the next requests for its contents.
        reads: How many of these came.
        denied: Whether it lets nobody in.
    """

    failures: list[int] = field(default_factory=list)
    reads: int = 0
    denied: bool = False


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    found = Store()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            there = self.path == "/lake/shop/t.json" and not found.denied
            self.send_response(403 if found.denied else 200 if there else 404)
            self.send_header("Content-Length", str(len(CONTENT)) if there else "0")
            self.end_headers()

        def do_GET(self) -> None:
            found.reads += 1
            status = found.failures.pop(0) if found.failures else 206
            code = {403: "AccessDenied", 503: "SlowDown"}.get(status)
            body = CONTENT if code is None else f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    properties = {
        "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.region": "us-east-1",
    }
    reach_by("s3://lake/shop", properties)
    monkeypatch.setattr(file_access, "WAITS", (0.01, 0.01))
    yield found
    server.shutdown()
    server.server_close()


def test_an_overloaded_store_is_asked_again(store: Store) -> None:
    store.failures = [503, 503]
    assert read_json("s3://lake/shop/t.json") == {"a": 1}
    assert store.reads == 3


def test_a_store_that_refuses_is_told_from_a_file_that_is_damaged(store: Store) -> None:
    store.failures = [503] * 200
    with pytest.raises(EnvironmentFault, match="STORE_UNAVAILABLE"):
        read_json("s3://lake/shop/t.json")
    store.denied, store.failures = True, []
    with pytest.raises(EnvironmentFault, match="STORE_DENIED"):
        read_json("s3://lake/shop/t.json")


def test_a_file_that_is_not_there_is_told_at_once(store: Store) -> None:
    with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE") as caught:
        read_json("s3://lake/shop/none.json")
    assert caught.value.retryable
    assert "FileNotFoundError" in str(caught.value)
    assert store.reads == 0


def test_what_iceberg_reaches_by_itself_is_told_apart() -> None:
    reach_by("s3://ours/shop", {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"})
    reach_by("gs://plain/shop", {"gcs.project-id": "p"})  # by the file system that Spark itself has
    assert file_access.iceberg_access("s3://ours/shop/_headrace/landing/1")
    assert not file_access.iceberg_access("gs://plain/shop/_headrace/landing/1")
    assert not file_access.iceberg_access("/warehouse/_headrace/landing/1")
