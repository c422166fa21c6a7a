"""Reads the manifests of an Iceberg table without a Spark job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.lake.files.avro import read_avro
from headrace.lake.metadata import TableMeta, read_bytes

_ADDED, _DELETED = 1, 2
"""Statuses of entries whose files are new, and gone, by Iceberg's specification."""


def manifest_list(meta: TableMeta, snapshot: int) -> str:
    """Return where a snapshot's manifest list is, which is never written again.

    Raises:
        ValueError: It has none.
    """
    location = meta.snapshots[snapshot].manifest_list
    if location is None:
        raise ValueError("an early format v1 lists its manifests in the metadata file")
    return location


def manifests(listed: str) -> list[dict[str, Any]]:
    """Return the entries of a manifest list.

    Args:
        listed: Its path.

    Raises:
        ValueError: It cannot be read.
        OSError: It cannot be reached.
    """
    return list(read_avro(read_bytes(listed)))


def live_files(manifest: str) -> Iterator[dict[str, Any]]:
    """Return the files, of data or of deletes, that a manifest lists as live.

    Errors as of `manifests`.

    Args:
        manifest: Its path.
    """
    return (entry["data_file"] for entry in read_avro(read_bytes(manifest)) if entry["status"] != _DELETED)


def added_files(manifest: str) -> Iterator[dict[str, Any]]:
    """Return the files that came with the snapshot which a manifest was written for.

    Errors as of `manifests`.

    Args:
        manifest: Its path.
    """
    return (entry["data_file"] for entry in read_avro(read_bytes(manifest)) if entry["status"] == _ADDED)
