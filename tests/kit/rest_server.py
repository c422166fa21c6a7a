"""Iceberg's own REST catalog, from the jars that its tests are published in, as a server that can be killed.

It is no product: it moves the tables of one `transactions/commit` one after the other, once it has checked all of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyspark
from pyiceberg.catalog import load_catalog

from headrace.config import Settings, default_settings
from headrace.lakes.lake_settings import LakeSettings
from headrace.spark.jars import Jar, ensure
from headrace.spark.java import find_java
from kit.sparks import SHORT_LIVED_OPTIONS

_ICEBERG, _JETTY, _HTTP = "1.11.0", "12.0.25", "org.apache.httpcomponents"

JARS = (
    Jar(
        "com.github.ben-manes.caffeine",
        "caffeine",
        "2.9.3",
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    Jar(f"{_HTTP}.client5", "httpclient5", "5.6.1", "1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772"),
    Jar(f"{_HTTP}.core5", "httpcore5", "5.4", "cec2981fa7f520efb63f0787c24f10af2679e31f9f75c448c4dde40a3ae8100d"),
    Jar(f"{_HTTP}.core5", "httpcore5-h2", "5.4", "2e0f4ace15db2d1609c2b06eca6012e7582afe4a99ad8d15073f62dd8edb3460"),
    Jar(
        "org.apache.iceberg",
        "iceberg-api",
        _ICEBERG,
        "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a",
    ),
    Jar(
        "org.apache.iceberg",
        "iceberg-bundled-guava",
        _ICEBERG,
        "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1",
    ),
    Jar(
        "org.apache.iceberg",
        "iceberg-common",
        _ICEBERG,
        "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d",
    ),
    Jar(
        "org.apache.iceberg",
        "iceberg-core",
        _ICEBERG,
        "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090",
    ),
    Jar(
        "org.apache.iceberg",
        "iceberg-core",
        _ICEBERG,
        "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3",
        "tests",
    ),
    Jar(
        "jakarta.servlet",
        "jakarta.servlet-api",
        "6.0.0",
        "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef",
    ),
    Jar(
        "org.eclipse.jetty.ee10",
        "jetty-ee10-servlet",
        _JETTY,
        "19856d179f5a3dd342d16bec32649e58c426e1246b5567cc9191a6df64956375",
    ),
    Jar("org.eclipse.jetty", "jetty-http", _JETTY, "d9b17041149859105cce0c64f613c105a9dba829fd3994677e6698134a5e08bb"),
    Jar("org.eclipse.jetty", "jetty-io", _JETTY, "8525f9e20edc3d08dfc45d6739081f29df9f7e6442e2467b77f78eba8e428143"),
    Jar(
        "org.eclipse.jetty",
        "jetty-security",
        _JETTY,
        "5405dc58b5e7db6758c9aee015d9c534f79d45777beb35cd0aa021f4a88b7b9a",
    ),
    Jar(
        "org.eclipse.jetty", "jetty-server", _JETTY, "e923a0ec38fb38afe8d571567cbe0170fd19bcef3416fe58abf5e0fc3f41e2d0"
    ),
    Jar(
        "org.eclipse.jetty", "jetty-session", _JETTY, "6771937fcc69143bd0408d89994fc59927e354a686914b12d176f17921ee0fc0"
    ),
    Jar("org.eclipse.jetty", "jetty-util", _JETTY, "2673f3c0b4adcf1c5afa2eb3c54fd4319b7e74caf83d303b030667f5b03376ae"),
)
"""What Spark does not bring, pinned as Spark's own jars are."""

_OF_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "avro-1", "jackson-core-2", "jackson-databind-2")
_OF_SPARK += ("jackson-annotations-2", "slf4j-api", "RoaringBitmap")

_PATIENCE = 120.0
"""Seconds until a server must have started, on machines that do much else."""


@dataclass
class RestServer:
    """A server and its store, which outlives it.

    Args:
        folder: Where its store and its tables are.
        warehouse: Where tables are that are made without a location.
        port: Where it listens; 0 before it first started.
    """

    folder: Path
    warehouse: Path
    port: int = 0
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def uri(self) -> str:
        """Return what `[lake]` has as `uri`."""
        return f"http://127.0.0.1:{self.port}"

    def settings(self, root: Path) -> Settings:
        """Return those of a project with Spark whose tables are there."""
        return replace(
            default_settings(root),
            warehouse=str(self.warehouse),
            spark_master="local[2]",
            spark_options=SHORT_LIVED_OPTIONS,
            lake=LakeSettings(self.uri),
        )

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return a table's rows, in an order, as somebody reads it who knows the server only."""
        found = load_catalog("reader", type="rest", uri=self.uri).load_table(table).scan().to_arrow()
        return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)

    @property
    def pid(self) -> int:
        """Return the process that runs it."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, where it was before."""
        settings = default_settings(self.folder)
        fetched, own = ensure(settings, jars=JARS), ensure(settings)
        spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
        path = [*fetched, *(jar for jar in own if "sqlite" in jar.name)]
        path += [jar for jar in spark if jar.name.startswith(_OF_SPARK)]
        launcher = Path(__file__).parent / "rest_fixture" / "Launcher.java"
        command = [
            str(find_java().executable),
            "-XX:TieredStopAtLevel=1",
            "-Xmx256m",
            "-cp",
            os.pathsep.join(map(str, path)),
        ]
        command += [str(launcher), f"port={self.port}", "catalog-impl=org.apache.iceberg.jdbc.JdbcCatalog"]
        store = f"jdbc:sqlite:{self.folder / 'rest.db'}?journal_mode=WAL&busy_timeout=10000"
        command += [f"uri={store}", "jdbc.schema-version=V1", f"warehouse={self.warehouse}"]
        log = self.folder / "rest.log"
        with log.open("w") as complaints:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("listening on "):
            raise RuntimeError(f"The REST catalog did not start: {log.read_text()[-3000:]}")
        self.port = int(said.split()[-1])

    def kill(self) -> None:
        """End it as a power failure would."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def wait_for_death(self) -> None:
        """Wait until somebody else has killed it."""
        assert self._process is not None
        self._process.wait(_PATIENCE)


@contextmanager
def rest_server(folder: Path, warehouse: Path) -> Iterator[RestServer]:
    """Run a server while the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    server = RestServer(folder, warehouse)
    server.start()
    try:
        yield server
    finally:
        server.kill()
