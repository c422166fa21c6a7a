"""Quicker starts: an archive of the classes Spark loads, made once per machine.

Most of a session's start is Java reading and verifying twenty thousand classes. An archive of them (class data
sharing, part of every JDK) halves the processor time from starting to the first query (measured: 26 s to 13 s on a
crowded machine). Java ignores an archive that does not fit its version or the class path, so a stale one does no harm;
and does no good, so that every class path has an archive of its own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headrace.config import Settings, default_settings, load
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.spark.jars import ensure, locked, needed
from headrace.spark.java import find_java

CLASS_PATH = "spark.driver.extraClassPath"


def class_path(settings: Settings) -> str:
    """Return what the class path of sessions begins with: the user's jars, then ours."""
    ours = (str(settings.jars / jar.file) for jar in needed(settings))
    theirs = settings.spark_options.get(CLASS_PATH, "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(filter(None, (*theirs, *ours))))


def archive(settings: Settings) -> Path:
    """Return where the archive is, or would be.

    Its name says for which Java, Spark and class path.
    """
    import pyspark

    java = find_java().executable.resolve()
    parts = (str(java), str(java.stat().st_mtime_ns), pyspark.__version__, pyspark.__file__, class_path(settings))
    return settings.jars / f"classes-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}.jsa"


def java_options(settings: Settings) -> tuple[str, ...]:
    """Return Java options that use the archive; none where there is none yet."""
    try:
        path = archive(settings)
    except EnvironmentFault:
        return ()
    return (f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if path.is_file() else ()


def prepare(settings: Settings, events: Events | None = None) -> bool:
    """Make the class archive if it is missing, by a small session in another process.

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
            command = [
                sys.executable,
                "-m",
                "headrace.spark.class_archive_session",
                str(settings.jars),
                folder,
                str(made),
                class_path(settings),
            ]
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, timeout=600, check=False)
            if made.is_file():
                made.replace(path)
                _keep_newest(settings.jars)
    return path.is_file()


_KEPT = 3
"""Archives kept in a folder of jars, of 190 MB each: one for every environment and Java that uses it."""


def _keep_newest(jars: Path) -> None:
    archives = sorted(jars.glob("classes-*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        with suppress(OSError):
            old.unlink()


if __name__ == "__main__":
    print("Preparing quick starts of Spark (once per machine)", flush=True)
    given = os.environ.get("HEADRACE_JARS_DIR")
    default = replace(default_settings(Path()), jars_dir=given)
    prepare(load(sys.argv[1]) if sys.argv[1:] else default)  # a project whose class path is not the usual one
