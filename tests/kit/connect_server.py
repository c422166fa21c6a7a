"""A Spark Connect server of the installed jars, configured for one project, as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark

from headrace.config import Settings
from headrace.spark.jars import ensure
from headrace.spark.java import find_java
from headrace.spark.session import session_options

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """A running server.

    Args:
        address: Such as `sc://127.0.0.1:40001`.
        ui: Where its UI and REST interface answer, if options have it answer.
        process: Leads a process group of its own.
    """

    address: str
    ui: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it as a power cut would."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def connect_server(settings: Settings, log: Path, options: Mapping[str, str] | None = None) -> Iterator[ConnectServer]:
    """Start a server that has a project's catalogs; end it afterwards.

    Args:
        settings: The project's, with a local master.
        log: Receives what the server prints.
        options: Further options of Spark.
    """
    port, ui = _free_port(), _free_port()
    given = {
        **session_options(settings, ensure(settings)),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.port": str(ui),
        **(options or {}),
    }
    master = given.pop("spark.master", settings.spark_master)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", master, "--class", MAIN]
    for name, value in given.items():
        command += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    find_java()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "spark-internal"], stdout=out, stderr=out, env=environment, start_new_session=True
        )
    server = ConnectServer(f"sc://127.0.0.1:{port}", f"http://127.0.0.1:{ui}", process)
    try:
        _await(port, process, log)
        yield server
    finally:
        server.kill()


def remote(settings: Settings, server: ConnectServer) -> Settings:
    """Return a project's settings with the server in the place of its master."""
    return replace(settings, spark_remote=server.address, spark_options={})


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-4000:]
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"no answer within {START_SECONDS} s:\n{log.read_text()[-4000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
