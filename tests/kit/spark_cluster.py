"""A standalone Spark cluster on loopback from the installed PySpark, which comes without scripts that start one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from headrace.spark.java import find_java
from kit.waiting import until

_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class SparkCluster:
    """A master and its workers.

    Each has a core for the session of the tests, and another one for a driver that is killed.

    Args:
        folder: Where they write.
        port: The master's.
    """

    folder: Path
    port: int
    _master: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """Return what a project has as `spark_master`."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self, workers: int = 2) -> None:
        """Start the master and its workers."""
        self._master = self._run("master", f"{_DEPLOY}.master.Master", "--port", str(self.port), "--webui-port", "0")
        until(lambda: _listens(self.port))
        for number in range(workers):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        """Start one worker, which is not running."""
        folder = self.folder / f"worker-{number}"
        folder.mkdir(exist_ok=True)
        given = ("--cores", "2", "--memory", "2g", "--webui-port", "0", "--work-dir", str(folder), self.url)
        self._workers[number] = self._run(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *given)
        registered = b"Successfully registered with master"
        until(lambda: registered in (self.folder / f"worker-{number}.log").read_bytes())

    def executors(self, number: int | None = None) -> list[psutil.Process]:
        """Return the JVMs that run tasks, of one worker or of all."""
        found = []
        for of, worker in self._workers.items():
            if number in (None, of):
                with suppress(psutil.NoSuchProcess):
                    children = psutil.Process(worker.pid).children(recursive=True)
                    found += [child for child in children if any(_EXECUTOR in word for word in _command(child))]
        return found

    def kill_executors(self) -> int:
        """End all executors as the kernel does when memory is short; how many they were."""
        killed = self.executors()
        for process in killed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(killed, 30)
        return len(killed)

    def kill_worker(self, number: int) -> None:
        """End a worker and its executors at once, as when a machine goes."""
        worker = self._workers.pop(number)
        gone = [psutil.Process(worker.pid), *self.executors(number)]
        for process in gone:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        worker.wait()

    def stop(self) -> None:
        """End everything."""
        for number in list(self._workers):
            self.kill_worker(number)
        if self._master is not None:
            self._master.kill()
            self._master.wait()

    def _run(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [
            str(find_java().executable),
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dspark.master.rest.enabled=false",  # its port is a fixed one
            *("-cp", f"{_HOME / 'jars'}/*", main, "--host", "127.0.0.1", *arguments),
        ]
        # the address is that of their pages, too; the version is what Spark's own scripts set, and executors ask for
        own = {"SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": "2.13"}
        environment = {**os.environ, **own}
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Run a cluster while the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cluster = SparkCluster(folder, port)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def kill(pid: int) -> None:
    """End a process that may be gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
