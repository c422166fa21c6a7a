"""Undoes what others did to stored tables, by the metadata files that Headrace published.

A drop, a foreign commit and a rolled-back snapshot all leave those files where they were: pointing at them again brings
back the very snapshots that frontiers, change logs and readers rest on. Only where files are gone has a table to be
computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from headrace.catalog import Catalog, ForeignWrite, Lease
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.lake.metadata import METADATA_UNREADABLE, read_json
from headrace.names import LAKE, TableName
from headrace.sources.lakehouse.missing_files import first_missing, is_lost

_THREADS = 16
"""Tables looked at at once."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome for stored tables that others had changed.

    Args:
        back: Those that are again what was published.
        lost: Those of which files are gone, each with the first that is.
    """

    back: tuple[ForeignWrite, ...] = ()
    lost: Mapping[TableName, str] = field(default_factory=dict)


def restore(catalog: Catalog, stored: Iterable[TableName], leases: Callable[[], Sequence[Lease]]) -> Restored:
    """Let stored tables be what Headrace published last, as far as their files are there.

    Args:
        catalog: The catalog.
        stored: The stored tables.
        leases: Leases of the caller on what they belong to.

    Raises:
        EnvironmentFault: `LEASE_LOST`, `FOREIGN_WRITER`.
    """
    writes = catalog.foreign_writes(tuple(stored))
    if not writes:
        return Restored()
    needed = _read_by_others(catalog, {write.name for write in writes})
    missing = {w.name: file for w in writes if (file := first_missing(w.published, needed.get(w.name, ())))}
    back = tuple(write for write in writes if write.name not in missing)
    if back:
        catalog.restore_pointers(back, held=leases())
    return Restored(back, missing)


def lost_unchanged(catalog: Catalog, stored: Iterable[TableName], *, whole: bool) -> dict[TableName, str]:
    """Return stored tables that nobody changed, and of which files are lost, with one file each.

    A store that loses a file, a disk that fails or a backup older than the catalog leave such.

    Args:
        catalog: The catalog.
        stored: The stored tables.
        whole: Look for all files of their rows, not only for metadata.

    Raises:
        EnvironmentFault: `METADATA_UNREADABLE` where nothing of the lake can be read: the warehouse is not there;
            another code where the store lets nothing be read.
    """
    pointers = catalog.pointers(LAKE, tuple(stored))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-look") as pool:
        looks = {
            name: pool.submit(first_missing if whole else _lost, pointer.metadata_location)
            for name, pointer in pointers.items()
        }
        lost = {name: file for name, look in looks.items() if (file := look.result()) is not None}
    if lost and not lake_is_there(catalog):
        raise EnvironmentFault(
            METADATA_UNREADABLE,
            "Nothing of the lake can be read, so nothing was repaired.",
            detail=f"Missing: {next(iter(lost.values()))}",
            hint="Check that the warehouse is where headrace.toml says, and is reachable.",
            retryable=True,
        )
    return lost


def _lost(location: str) -> str | None:
    return location if is_lost(location) else None


def lake_is_there(catalog: Catalog) -> bool:
    """Return whether the warehouse is there: files of some table are, or there are no tables."""
    pointers = catalog.pointers()
    for pointer in pointers.values():
        with suppress(HeadraceError):
            read_json(pointer.metadata_location)  # the file itself, not what is remembered of it
            return True
    return not pointers


def _read_by_others(catalog: Catalog, names: set[TableName]) -> dict[TableName, set[int]]:
    """Return the snapshots of stream tables and mirrors at which their readers stand."""
    with catalog.reading() as reader:
        stands = {(source, at) for frontier in reader.frontiers().values() for source, at in frontier.items()}
        found: dict[TableName, set[int]] = {}
        for name, number in stands:
            version = reader.version_at(name, number) if name in names else None
            if version is not None and version.snapshot_id is not None:
                found.setdefault(name, set()).add(version.snapshot_id)
    return found


def lost_files(lost: Mapping[TableName, str]) -> EnvironmentFault:
    """Return the error for tables whose published files are gone.

    Args:
        lost: The tables, each with a file that is missing.
    """
    name, file = next(iter(lost.items()))
    return EnvironmentFault(
        "FOREIGN_WRITER",
        f"{name} was changed by another program, and files that Headrace had published are gone; nothing was changed.",
        detail=f"Missing: {file}",
        hint=f"`headrace repair {name}` makes the table anew, and has its readers compute anew.",
    )
