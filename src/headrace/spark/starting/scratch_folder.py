"""Gives each JVM a scratch folder of its own, and removes those of JVMs that were killed.

Spark puts shuffled and kept rows, and native libraries, into Java's folder of temporary files, and removes them when it
ends. A JVM that is killed leaves all of it. The JVM holds a lock of its folder for as long as it lives, as an open file
that it inherits; what can be locked is nobody's. systemd-tmpfiles, which removes from /tmp what nobody touched for ten
days, leaves alone a folder that is locked, with all that is in it (tmpfiles.d(5), "Age").
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def scratch_folder(base: Path | None = None) -> Iterator[tuple[Path, int] | None]:
    """Make a scratch folder; sweep away, meanwhile, those that nobody uses.

    Args:
        base: The folder of all scratch folders; one of the user's own below Java's folder of temporary files when None.

    Yields:
        The folder and a descriptor that holds its lock, for the process that is to use it. None where there can be no
        such folder: Java's own is used then.
    """
    try:
        made = _made(_base() if base is None else base)
    except OSError:
        made = None
    if made is None:
        yield None
        return
    folder, lock = made
    try:
        threading.Thread(target=sweep, args=(folder.parent,), name="headrace-scratch", daemon=True).start()
        yield folder, lock
    finally:
        os.close(lock)  # a process that has inherited it holds it still


def sweep(base: Path) -> None:
    """Remove the scratch folders that no process uses any more.

    Args:
        base: The folder of all scratch folders.
    """
    for folder in base.iterdir():
        with suppress(OSError):  # somebody else was faster, or may do what we may not
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _made(base: Path) -> tuple[Path, int] | None:
    base.mkdir(mode=0o700, exist_ok=True)
    if not _is_private(base):
        return None
    while True:
        folder = base / uuid.uuid4().hex[:12]
        folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):  # a sweep came between making it and locking it
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                folder.stat()
            except BaseException:
                os.close(descriptor)
                raise
            return folder, descriptor


def _base() -> Path:
    """Return the folder of all scratch folders of this user, where Java's would be."""
    above = "/tmp" if sys.platform == "linux" else tempfile.gettempdir()  # Java's own; it does not look at TMPDIR
    return Path(above) / f"headrace-spark-{os.getuid()}"


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's, and nobody else can put anything into it."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
