"""Ends Spark sessions whose driver is alive, hung, half stopped or dead.

PySpark keeps the gateway to its JVM for the life of the Python process, and offers nothing that forgets one whose JVM
has died: the next session would be asked for from the dead. So this is the one place that reaches behind its public
API. A JVM that has lost its context (out of memory, most likely) is not trusted to make another one either.
"""

from __future__ import annotations

import subprocess
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headrace.names import LAKE, STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_SECONDS = 10.0
"""A JVM that is told to end is given that long."""


def stop(session: SparkSession, *, remote: bool) -> None:
    """Stop a session that this process started; never fails.

    A JVM that is well stays for the next session.

    Args:
        session: The session.
        remote: Whether it is one of Spark Connect's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session.stop()
    except Exception:  # Py4J's or Python's own, by how the JVM died
        if not remote:
            end(session)


def leave(session: SparkSession) -> None:
    """End the use of a session that was made for one project or command; never fails.

    A classic one closes what its catalogs hold. Spark keeps their connections to the database until garbage is
    collected: a process that opens projects again and again, or a server with a session per command, would use up those
    of a PostgreSQL server. One of Spark Connect is released by the server. Python's last collection of garbage would
    wait for its connection for ever.

    Args:
        session: The session; its JVM may be gone.
    """
    java: Any = getattr(session, "_jsparkSession", None)
    if java is not None:
        close_catalogs_in(session._jvm, java)
    else:
        stop(session, remote=True)


def close_catalogs_in(jvm: Any, java: Any) -> None:
    """Do the same for a session that only the JVM knows.

    Args:
        jvm: Py4J's view of it.
        java: The session there.
    """
    with suppress(Exception):
        manager = java.sessionState().catalogManager()
        used = str(manager.listCatalogs(jvm.scala.Option.apply(None)).mkString(",")).split(",")
        for name in {LAKE, STAGING}.intersection(used):  # asking for one that was not used would make it
            with suppress(Exception):
                manager.catalog(name).icebergCatalog().close()


def end(session: SparkSession) -> None:
    """End a classic session that this process started, and its JVM.

    Nothing may use the session meanwhile. Never fails.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Session

    gateway: Any = SparkContext._gateway
    _end_process(getattr(gateway, "proc", None))
    with warnings.catch_warnings():  # it says that the process has crashed; we know
        warnings.simplefilter("ignore")
        for _ in range(2):  # the first one stumbles over the dead JVM, the second does what is left on this side
            with suppress(Exception):
                session.sparkContext.stop()
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    Session._instantiatedSession = Session._activeSession = None


def await_end() -> None:
    """Wait until the JVM that this process started has ended by itself, whatever it does before."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None and process.stdin is not None:
        process.stdin.close()  # which tells it that nobody needs it any more
        process.wait()


def _end_process(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
