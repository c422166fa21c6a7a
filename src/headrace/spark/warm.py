"""Quicker starts: an archive of the classes Spark loads, made once per machine.

Most of a session's start is Java reading and verifying twenty thousand classes. An archive of them (class data
sharing, part of every JDK) halves the processor time from starting to the first query (measured: 26 s to 13 s on a
crowded machine). Java ignores an archive that does not fit its version or the jars, so a stale one does no harm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from headrace.config import Settings, default_settings
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.spark.jars import ensure, locked
from headrace.spark.java import find_java

TRAINING = (
    "CREATE NAMESPACE lake.w",
    "CREATE TABLE lake.w.t (k BIGINT, g STRING, v DECIMAL(12,2), d DATE)",
    "INSERT INTO lake.w.t SELECT id, concat('g', id % 7), id * 1.5, DATE'2026-01-01' FROM range(1000)",
    "UPDATE lake.w.t SET v = v + 1 WHERE k < 5",
    "DELETE FROM lake.w.t AS s WHERE EXISTS (SELECT 1 FROM (SELECT id FROM range(9)) AS c WHERE c.id <=> s.k)",
    "MERGE INTO lake.w.t USING (SELECT 10L AS id) AS c ON c.id = k WHEN MATCHED THEN DELETE",
    "SELECT a.g, sum(a.v), count(*) FROM lake.w.t a JOIN lake.w.t b ON a.k = b.k GROUP BY a.g ORDER BY 1",
    "INSERT OVERWRITE lake.w.t SELECT * FROM lake.w.t WHERE k % 2 = 0",
    "SELECT * FROM lake.w.t.snapshots",
)
"""What the archive is made from: roughly what a first refresh runs."""


def archive(settings: Settings) -> Path:
    """Where the archive is, or would be: its name says for which Java, Spark and jars."""
    import pyspark

    java = find_java().executable.resolve()
    parts = (str(java), str(java.stat().st_mtime_ns), pyspark.__version__, pyspark.__file__, str(settings.jars))
    return settings.jars / f"classes-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}.jsa"


def java_options(settings: Settings) -> tuple[str, ...]:
    """Java options that use the archive; none where there is none yet."""
    try:
        path = archive(settings)
    except EnvironmentFault:
        return ()
    return (f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if path.is_file() else ()


def prepare(settings: Settings, events: Events | None = None) -> bool:
    """Make the archive if it is missing: runs a small Spark session in another process, about half a minute.

    A convenience, so it never fails: without an archive Spark merely starts slower.

    Returns:
        Whether there is an archive now.
    """
    ensure(settings, events)
    path = archive(settings)
    if path.is_file():
        return True
    with locked(settings.jars):
        if path.is_file():
            return True
        if events is not None:
            events.emit(Notice("Preparing quick starts of Spark (once per machine)"))
        with tempfile.TemporaryDirectory(prefix="headrace-warm-") as folder:
            made = settings.jars / f".{path.name}.{os.getpid()}"
            command = [sys.executable, "-m", "headrace.spark.warm", str(settings.jars), folder, str(made)]
            with suppress(OSError, subprocess.TimeoutExpired):
                # Java outlives its Python while it writes the archive; reading its output waits for it.
                subprocess.run(command, capture_output=True, timeout=600, check=False)
            if made.is_file():
                made.replace(path)
    return path.is_file()


def train(jars: str, folder: str, made: str) -> None:
    """Run typical statements in a session whose Java writes the archive when it ends."""
    from headrace.spark.session import open_session

    settings = dataclasses.replace(
        default_settings(Path(folder)),
        jars_dir=jars,
        spark_master="local[2]",
        spark_options={"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={made}"},
    )
    session = open_session(settings)
    for statement in TRAINING:
        session.sql(statement).collect()
    session.stop()


if __name__ == "__main__":
    train(*sys.argv[1:4])
