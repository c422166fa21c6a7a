"""Checks that the files of a table's snapshots still exist, without a Spark job."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from headrace.errors import HeadraceError
from headrace.lake.files.file_access import file_io
from headrace.lake.metadata import METADATA_UNREADABLE, TableMeta, local_path, read_metadata, unreadable
from headrace.sources.lakehouse.manifests import live_files, manifest_list, manifests

_THREADS = 16
"""Files asked for at once: an object store answers each within a tenth of a second."""

GONE = (
    FileNotFoundError,
    NotADirectoryError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    struct.error,
    zlib.error,
    gzip.BadGzipFile,
)
"""Errors of reading a file that is not there, is cut short, or holds something else; others are of its store."""


def is_lost(location: str) -> bool:
    """Return whether a table's metadata file is not there, or holds no metadata.

    Args:
        location: The metadata file.

    Raises:
        EnvironmentFault: It cannot be told, as the store does not let it be read.
    """
    return _read(location) is None


def first_missing(location: str, snapshots: Iterable[int] = ()) -> str | None:
    """Return a file without which a table cannot be read; None when all are there.

    Args:
        location: A metadata file of the table.
        snapshots: Snapshots that must be readable besides the current one.

    Raises:
        EnvironmentFault: It cannot be told, as the store does not let a file be read.
    """
    meta = _read(location)
    if meta is None:
        return location
    current = () if meta.current_snapshot_id is None else (meta.current_snapshot_id,)
    for snapshot in dict.fromkeys((*current, *snapshots)):
        if (missing := _missing_of(meta, snapshot)) is not None:
            return missing
    return None


def _read(location: str) -> TableMeta | None:
    """Return a table's metadata; None where it is lost."""
    try:
        return read_metadata(location)
    except HeadraceError as error:
        if error.code == METADATA_UNREADABLE and isinstance(error.__cause__, GONE):
            return None
        raise


def _missing_of(meta: TableMeta, snapshot: int) -> str | None:
    if snapshot not in meta.snapshots:
        return f"snapshot {snapshot}"
    at = meta.metadata_location
    try:
        at = manifest_list(meta, snapshot)
        paths: list[str] = []
        for entry in manifests(at):
            at = entry["manifest_path"]
            paths += (file["file_path"] for file in live_files(at))
    except GONE:
        return at
    except OSError as error:
        raise unreadable(at, error) from error
    with ThreadPoolExecutor(_THREADS) as pool:
        there = pool.map(_exists, paths)
        return next((path for path, found in zip(paths, there, strict=True) if not found), None)


def _exists(path: str) -> bool:
    local = local_path(path)
    if local is not None:
        return local.exists()
    return file_io(path).new_input(path).exists()
