"""Finds the files that a table has gained since an earlier state, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.lake.metadata import TableMeta
from headrace.sources.lakehouse.manifests import added_files, manifest_list, manifests


def files_written(before: TableMeta | None, after: TableMeta) -> Iterator[str]:
    """Yield the files of a table's new state: metadata, lists, manifests, data and deletes.

    Args:
        before: An earlier state; None for a table that is new.
        after: The new one.

    Raises:
        ValueError: A manifest cannot be read.
        OSError: A file cannot be reached.
    """
    yield after.metadata_location
    known = before.snapshots.keys() if before is not None and before.uuid == after.uuid else frozenset[int]()
    new = after.snapshots.keys() - known
    for snapshot in new:
        listed = manifest_list(after, snapshot)
        yield listed
        for entry in manifests(listed):
            if entry["added_snapshot_id"] == snapshot:
                yield entry["manifest_path"]
                yield from (file["file_path"] for file in added_files(entry["manifest_path"]))
