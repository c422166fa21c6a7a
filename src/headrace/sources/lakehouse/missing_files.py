"""Checks that the files of a table's snapshots still exist, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from headrace.errors import HeadraceError
from headrace.lake.files.file_access import file_io
from headrace.lake.metadata import TableMeta, local_path, read_metadata
from headrace.sources.lakehouse.manifests import live_files, manifest_list, manifests

_THREADS = 16
"""Files asked for at once: an object store answers each within a tenth of a second."""


def first_missing(location: str, snapshots: Iterable[int] = ()) -> str | None:
    """Return a file without which a table cannot be read; None when all are there.

    Args:
        location: A metadata file of the table.
        snapshots: Snapshots that must be readable besides the current one.
    """
    try:
        meta = read_metadata(location)
    except HeadraceError:
        return location
    current = () if meta.current_snapshot_id is None else (meta.current_snapshot_id,)
    for snapshot in dict.fromkeys((*current, *snapshots)):
        if (missing := _missing_of(meta, snapshot)) is not None:
            return missing
    return None


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
    except (OSError, ValueError):
        return at
    with ThreadPoolExecutor(_THREADS) as pool:
        there = pool.map(_exists, paths)
        return next((path for path, found in zip(paths, there, strict=True) if not found), None)


def _exists(path: str) -> bool:
    local = local_path(path)
    if local is not None:
        return local.exists()
    return file_io(path).new_input(path).exists()
