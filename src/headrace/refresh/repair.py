"""Undoes what others did to stored tables, by the metadata files that Headrace published.

A drop, a foreign commit and a rolled-back snapshot all leave those files where they were: pointing at them again brings
back the very snapshots that frontiers, change logs and readers rest on. Only where files are gone has a table to be
computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.catalog import Catalog, ForeignWrite, Lease
from headrace.errors import EnvironmentFault
from headrace.names import TableName
from headrace.sources.lakehouse.missing_files import first_missing


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
        hint="REPAIR STREAM TABLE (`headrace repair`) makes the table anew, and has its readers compute anew.",
    )
