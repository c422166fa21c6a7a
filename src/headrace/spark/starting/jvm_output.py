"""Starts the JVM, and hears what it says.

It would write on the terminal by itself, into the middle of a spinner or of output that is piped, and begin with a
warning that is of no use.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from headrace.spark.starting.scratch_folder import scratch_folder

STDERR = 2

USELESS = re.compile(r"WARNING: Using incubator modules: jdk\.incubator\.vector|\d+ compiler directives added")
"""Lines that nobody can do anything about: Spark asks Java for that module, and this project has directives."""

JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
"""Names what the driver's JVM is started with; the user's own, `extraJavaOptions`, come behind it and win."""

DRAIN_SECONDS = 1.0
"""Seconds to wait for the last output of a JVM that failed to start."""

Tell = Callable[[str], object]

_tellers: list[Tell] = []

_launched_with: set[str] = set()
"""Options that are properties of the JVM, where a later session, of another project, would find them as well."""


@contextmanager
def telling_by(tell: Tell) -> Iterator[None]:
    """Pass what the JVM says to a function while the block runs.

    Without one it goes to this process's error output.

    Args:
        tell: Called with each line, in a thread of its own.
    """
    _tellers.append(tell)
    try:
        yield
    finally:
        _tellers.remove(tell)


def launch_jvm(options: Mapping[str, str]) -> None:
    """Start the JVM that the next classic session will use, unless there is one.

    Args:
        options: Those of the session, of which some are the JVM's.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        for name in _launched_with.difference(options):
            SparkContext._jvm.java.lang.System.clearProperty(name)  # type: ignore[union-attr]
        return
    _launched_with.update(options)
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    reading, writing = os.pipe()
    ears = threading.Thread(target=_hear, args=(reading,), name="headrace-jvm-output", daemon=True)
    ears.start()
    launched = False
    try:
        with scratch_folder() as scratch:
            how: dict[str, object] = {"stdout": writing, "stderr": writing}
            if scratch is not None:
                folder, lock = scratch
                given = options.get(JAVA_OPTIONS, "")
                conf.set(JAVA_OPTIONS, f"{given} -Djava.io.tmpdir={folder}".lstrip())
                how["pass_fds"] = (lock,)
            gateway = launch_gateway(conf, how)  # type: ignore[no-untyped-call]
        launched = True
    finally:
        os.close(writing)
        if not launched:  # whatever it said comes before the error
            ears.join(DRAIN_SECONDS)
    SparkContext._ensure_initialized(gateway=gateway)


def _hear(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not USELESS.match(line):
                _tell(line)


def _tell(line: str) -> None:
    if _tellers:
        with suppress(Exception):  # its display is over
            _tellers[-1](line.rstrip("\n"))
            return
    with suppress(OSError):
        os.write(STDERR, line.encode("utf-8", "replace"))
