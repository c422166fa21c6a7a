"""Has files of a local warehouse outlast a failure of power, as those of stores do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace.lake.metadata import local_path

_THREADS = 16
"""Files flushed at once: a disk writes many together in little more time than one."""


def flush(written: Mapping[str, Iterable[str]]) -> None:
    """Have local files be on the disk, and in their folders there; others are left alone.

    Args:
        written: The files of each table, by the folder of the table. Folders between it and the files may be new, and
            it may be, too.

    Raises:
        OSError: A file is not there, or the disk fails.
    """
    paths, folders = list[Path](), set[Path]()
    for root, locations in written.items():
        own = [path for location in locations if (path := local_path(location)) is not None]
        folders.update(folder for path in own for folder in _folders(path, local_path(root)))
        paths += own
    if not paths:
        return
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as pool:
        list(pool.map(_flush, paths))
        list(pool.map(_flush_folder, folders))


def _folders(path: Path, table: Path | None) -> Iterable[Path]:
    """Return the folders in which a file may have been entered anew, and they themselves."""
    if table is None or table not in path.parents:
        return (path.parent,)
    return [folder for folder in path.parents if folder == table.parent or folder.is_relative_to(table)]


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _flush_folder(path: Path) -> None:
    """Flush a folder, unless its file system knows no such thing, as some of networks do not."""
    try:
        _flush(path)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL):  # as PostgreSQL's fsync_fname does
            raise
