"""How the files of two snapshots differ, read from their manifests: milliseconds, and no Spark job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.lake.avro import read_avro
from headrace.lake.metadata import TableMeta, read_bytes

_DELETED = 2
_PATH_FIELD = 2147483546
"""Iceberg's field id of the data file's path in a position delete file."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How the files of two snapshots differ.

    Args:
        added: Data files only the later one has.
        removed: Data files only the earlier one has.
        touched: Data files both have, with other deletes; None when the deletes do not name their files, which then
            may be any.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    touched: tuple[str, ...] | None


@dataclass(slots=True)
class _Side:
    """What the manifests of one snapshot, which the other one does not share, list as live."""

    data: set[str] = field(default_factory=set)
    deletes: dict[str, str | None] = field(default_factory=dict)


def file_diff(meta: TableMeta, before: int, after: int) -> FileDiff | None:
    """Compare the files of two snapshots; None when this process cannot read the manifests.

    Only manifests that one of them has and the other has not are opened, so the cost follows the change.
    """
    try:
        old, new = _manifests(meta, before), _manifests(meta, after)
        left, right = _read(old - new), _read(new - old)
    except (OSError, ValueError, KeyError, ImportError):
        return None
    added, removed = right.data - left.data, left.data - right.data
    changed = left.deletes.items() ^ right.deletes.items()
    files = {target for _, target in changed} - added - removed
    touched = None if None in files else _sorted(f for f in files if f is not None)
    return FileDiff(_sorted(added), _sorted(removed), touched)


def _manifests(meta: TableMeta, snapshot: int) -> set[str]:
    location = meta.snapshots[snapshot].manifest_list
    if location is None:
        raise ValueError("an early format v1 lists its manifests in the metadata file")
    return {entry["manifest_path"] for entry in read_avro(read_bytes(location))}


def _read(manifests: Iterable[str]) -> _Side:
    side = _Side()
    for path in manifests:
        for entry in read_avro(read_bytes(path)):
            if entry["status"] == _DELETED:
                continue
            file = entry["data_file"]
            if not file.get("content"):
                side.data.add(file["file_path"])
            else:  # several deletion vectors share one Puffin file, so its name alone is no identity
                side.deletes[f"{file['file_path']}@{file.get('content_offset')}"] = _target(file)
    return side


def _target(file: dict[str, Any]) -> str | None:
    """The data file that a delete file is about; older writers only tell by the bounds of its path column."""
    if named := file.get("referenced_data_file"):
        return str(named)
    low, high = (_bound(file.get(name)) for name in ("lower_bounds", "upper_bounds"))
    return low.decode() if low is not None and low == high else None


def _bound(bounds: Any) -> bytes | None:
    # Avro has no maps with integer keys: Iceberg writes them as arrays of entries.
    return next((entry["value"] for entry in bounds or () if entry["key"] == _PATH_FIELD), None)


def _sorted(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(files))
