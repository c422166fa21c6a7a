"""How the files of two snapshots differ, read from their manifests: milliseconds, and no Spark job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.lake.metadata import TableMeta

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile


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
    """What the manifests of one snapshot, which the other one does not share, list."""

    data: set[str]
    deletes: dict[str, str | None]


def file_diff(meta: TableMeta, before: int, after: int) -> FileDiff | None:
    """Compare the files of two snapshots; None when this process cannot read the manifests.

    Only manifests that one of them has and the other has not are opened, so the cost follows the change.
    """
    from pyiceberg.io import load_file_io

    try:
        io = load_file_io({}, meta.location)
        old, new = _manifests(meta, before, io), _manifests(meta, after, io)
        left = _list(old, new.keys(), io)
        right = _list(new, old.keys(), io)
    except (OSError, ValueError, ImportError, NotImplementedError):
        return None
    added, removed = right.data - left.data, left.data - right.data
    changed = dict(left.deletes.items() ^ right.deletes.items())
    files = set(changed.values()) - {*added, *removed}
    if None in files:
        return FileDiff(_sorted(added), _sorted(removed), None)
    return FileDiff(_sorted(added), _sorted(removed), _sorted(f for f in files if f))


def _manifests(meta: TableMeta, snapshot: int, io: FileIO) -> dict[str, ManifestFile]:
    from pyiceberg.manifest import read_manifest_list

    location = meta.snapshots[snapshot].manifest_list
    if location is None:
        raise ValueError("format v1 lists its manifests in the metadata file")
    return {m.manifest_path: m for m in read_manifest_list(io.new_input(location))}


def _list(manifests: dict[str, ManifestFile], shared: Iterable[str], io: FileIO) -> _Side:
    from pyiceberg.manifest import DataFileContent

    side, skip = _Side(set(), {}), set(shared)
    for path, manifest in manifests.items():
        if path in skip:
            continue
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            file = entry.data_file
            if file.content == DataFileContent.DATA:
                side.data.add(file.file_path)
            else:
                # Several deletion vectors share one Puffin file, so its name alone is no identity.
                target = getattr(file, "referenced_data_file", None)
                side.deletes[f"{file.file_path}#{target}#{file.record_count}"] = target
    return side


def _sorted(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(files))
