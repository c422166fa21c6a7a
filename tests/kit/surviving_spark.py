"""A Spark JVM that outlives the Python processes that use it, one after the other.

Whoever kills a process of Headrace kills its JVM with it, and the next one spends ten seconds of processor time on
starting another and on compiling the same code again. What a killed process leaves behind is in the catalog and the
lake, so that the next one may as well find a warm JVM, provided that the context of the dead one has been stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config import load
from headrace.spark.end_session import close_catalogs_in
from headrace.spark.jars import ensure
from headrace.spark.java import find_java
from headrace.spark.session import session_options


def with_kit() -> dict[str, str]:
    """Return this process's environment for another one that uses this kit."""
    path = filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


@dataclass(frozen=True)
class SurvivingSpark:
    """A running JVM.

    Args:
        gateway: The connection of this process to it.
    """

    gateway: Any

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that is to use the JVM and this kit; what runs there is stopped first."""
        self._stop_context()
        given = self.gateway.gateway_parameters
        return {
            **with_kit(),
            "PYSPARK_GATEWAY_PORT": str(given.port),
            "PYSPARK_GATEWAY_SECRET": given.auth_token,
            "PYSPARK_PIN_THREAD": "true",
        }

    def _stop_context(self) -> None:
        active = getattr(getattr(self.gateway.jvm, "org.apache.spark.SparkContext$"), "MODULE$").getActive()
        if active.isDefined():
            sessions = getattr(getattr(self.gateway.jvm, "org.apache.spark.sql.classic.SparkSession$"), "MODULE$")
            if (default := sessions.getDefaultSession()).isDefined():  # of a process that was killed
                close_catalogs_in(self.gateway.jvm, default.get())
            active.get().stop()


@contextmanager
def surviving_spark(project: Path) -> Iterator[SurvivingSpark]:
    """Run a JVM with the Spark options of a project, and end it with the block."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    find_java()
    settings = load(project)
    options = {"spark.master": settings.spark_master, **session_options(settings, ensure(settings))}
    conf = SparkConf(loadDefaults=False)
    conf.setAll(options.items())
    gateway = launch_gateway(conf)
    try:
        yield SurvivingSpark(gateway)
    finally:
        gateway.shutdown()
        gateway.proc.kill()
        gateway.proc.wait()
