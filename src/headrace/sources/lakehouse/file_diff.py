"""Differences of two snapshots' files, read from manifests without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from headrace.lake.metadata import TableMeta, read_bytes
from headrace.sources.lakehouse.deleted_rows import MOST_WORDS
from headrace.sources.lakehouse.deletion_vectors import Vector, positions_moved
from headrace.sources.lakehouse.manifests import live_files, manifest_list, manifests

if TYPE_CHECKING:
    from pyroaring import BitMap64

_DELETES = 1
"""Content of a manifest that lists delete files."""
_MOST_POSITIONS = 64 * MOST_WORDS
"""More positions would not be written into a query."""
_MOST_FILES = 1_000
"""Nor are those of more files, of which each has a vector to be read."""
_PATH_FIELD = 2147483546
"""Iceberg's field id of the data file's path in a position delete file."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The files that differ between two snapshots.

    Args:
        added: Data files only the later one has.
        removed: Data files only the earlier one has.
        touched: Data files both have, with other deletes; None when the deletes do not name their files, which then
            may be any.
        deleted: Positions in the touched files that only the later snapshot has deleted, by file; None when they were
            not looked for: too many, or not told by deletion vectors.
        undeleted: Positions that only the earlier one has deleted, alike.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    touched: tuple[str, ...] | None
    deleted: Mapping[str, BitMap64] | None = None
    undeleted: Mapping[str, BitMap64] | None = None


@dataclass(frozen=True, slots=True)
class _Delete:
    """A delete file, with its data file and its deletion vector, where it has these."""

    target: str | None
    vector: Vector | None


@dataclass(slots=True)
class _Side:
    """Live entries of the manifests that only one of the two snapshots lists."""

    data: set[str] = field(default_factory=set)
    deletes: dict[str, _Delete] = field(default_factory=dict)


def file_diff(meta: TableMeta, before: int, after: int) -> FileDiff | None:
    """Compare the files of two snapshots.

    Only manifests that one of them has and the other has not are opened, so the cost follows the change. They are
    opened once, however many stream tables ask: snapshots do not change.

    Args:
        meta: The table's metadata.
        before: Id of the former snapshot.
        after: Id of the later one.

    Returns:
        The difference; None when this process cannot read the manifests.
    """
    try:
        return _diff(manifest_list(meta, before), manifest_list(meta, after))
    except (OSError, ValueError, KeyError, ImportError):
        return None


@lru_cache(maxsize=16)  # the positions of one take up to 2 MB; failures are not kept
def _diff(before: str, after: str) -> FileDiff:
    """Return the difference of two manifest lists."""
    old, new = _manifests(before), _manifests(after)
    left, right = _read(old.keys() - new.keys()), _read(new.keys() - old.keys())
    added, removed = right.data - left.data, left.data - right.data
    changed = left.deletes.items() ^ right.deletes.items()
    files = {delete.target for _, delete in changed} - added - removed
    if None in files:
        return FileDiff(_sorted(added), _sorted(removed), None)
    touched = _sorted(f for f in files if f is not None)
    shared = [path for path, content in old.items() if path in new and content == _DELETES]
    vectors = _vectors(touched, left, right, shared)
    deleted = undeleted = None
    if vectors is not None:
        with suppress(OSError, ValueError):
            read = cache(read_bytes)  # vectors of several files share one
            moved = {file: positions_moved(*pair, read) for file, pair in vectors.items()}
            if sum(len(gained) + len(lost) for gained, lost in moved.values()) <= _MOST_POSITIONS:
                deleted = {file: gained for file, (gained, _) in moved.items()}
                undeleted = {file: lost for file, (_, lost) in moved.items()}
    return FileDiff(_sorted(added), _sorted(removed), touched, deleted, undeleted)


def _manifests(listed: str) -> dict[str, int]:
    """Return the manifests of a manifest list with their content, by path."""
    return {entry["manifest_path"]: entry.get("content") or 0 for entry in manifests(listed)}


def _read(paths: Iterable[str]) -> _Side:
    side = _Side()
    for path in paths:
        for file in live_files(path):
            if not file.get("content"):
                side.data.add(file["file_path"])
            else:  # several deletion vectors share one Puffin file, so its name alone is no identity
                name = f"{file['file_path']}@{file.get('content_offset')}"
                side.deletes[name] = _Delete(_target(file), _vector(file))
    return side


def _vectors(
    touched: tuple[str, ...], left: _Side, right: _Side, shared: Iterable[str]
) -> dict[str, tuple[Vector | None, Vector | None]] | None:
    """Return the vectors of each touched file before and after.

    None when vectors do not tell all of what is deleted.
    """
    if len(touched) > _MOST_FILES:
        return None
    wanted = frozenset(touched)
    sides = [{d.target: d.vector for d in side.deletes.values() if d.target in wanted} for side in (left, right)]
    if any(vector is None for side in sides for vector in side.values()):
        return None
    found = {file: (sides[0].get(file), sides[1].get(file)) for file in touched}
    if sum(abs(_size(new) - _size(old)) for old, new in found.values()) > _MOST_POSITIONS:
        return None
    # a file that has no vector on one side may have delete files of an older format, which are live on both
    if any(None in pair for pair in found.values()):
        others = (*left.deletes.values(), *right.deletes.values(), *_read(shared).deletes.values())
        if any(delete.vector is None for delete in others):
            return None
    return found


def _size(vector: Vector | None) -> int:
    return vector.deleted if vector is not None else 0


def _vector(file: Mapping[str, Any]) -> Vector | None:
    offset, size = file.get("content_offset"), file.get("content_size_in_bytes")
    if str(file.get("file_format")).upper() != "PUFFIN" or offset is None or size is None:
        return None
    return Vector(file["file_path"], offset, size, file["record_count"])


def _target(file: dict[str, Any]) -> str | None:
    """Return the data file that a delete file is about.

    Older writers only tell by the bounds of its path column.
    """
    if named := file.get("referenced_data_file"):
        return str(named)
    low, high = (_bound(file.get(name)) for name in ("lower_bounds", "upper_bounds"))
    return low.decode() if low is not None and low == high else None


def _bound(bounds: Any) -> bytes | None:
    # Avro has no maps with integer keys: Iceberg writes them as arrays of entries.
    return next((entry["value"] for entry in bounds or () if entry["key"] == _PATH_FIELD), None)


def _sorted(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(files))
