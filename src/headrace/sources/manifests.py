"""What the manifests of an Iceberg table list; read with no Spark job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.lake.avro import read_avro
from headrace.lake.metadata import TableMeta, read_bytes

_DELETED = 2


def manifests(meta: TableMeta, snapshot: int) -> list[dict[str, Any]]:
    """The entries of a snapshot's manifest list.

    Raises:
        ValueError: It has none, or one that cannot be read.
        OSError: It cannot be reached.
    """
    location = meta.snapshots[snapshot].manifest_list
    if location is None:
        raise ValueError("an early format v1 lists its manifests in the metadata file")
    return list(read_avro(read_bytes(location)))


def live_files(manifest: str) -> Iterator[dict[str, Any]]:
    """The files, of data or of deletes, that a manifest lists as live; errors as of `manifests`.

    Args:
        manifest: Its path.
    """
    return (entry["data_file"] for entry in read_avro(read_bytes(manifest)) if entry["status"] != _DELETED)
