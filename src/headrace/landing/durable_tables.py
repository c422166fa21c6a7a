"""Flushes the files that a landing wrote, before its source drops what was landed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.catalog import Pointer
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.lake.files.durable_files import flush
from headrace.lake.metadata import TableMeta, local_path
from headrace.names import TableName
from headrace.refresh.cut.cut import metadata
from headrace.sources.lakehouse.written_files import files_written


def make_durable(published: Mapping[TableName, Pointer], written: Iterable[tuple[TableName, TableMeta]]) -> None:
    """Flush the files that stored tables have gained; an object store needs none of it.

    Args:
        published: Pointers of the tables as they are published; new ones are left out.
        written: The tables as they are about to be.

    Raises:
        EnvironmentFault: `FILES_NOT_FLUSHED` (retryable).
    """
    local = [(name, meta) for name, meta in written if local_path(meta.location) is not None]
    try:
        flush({meta.location: files_written(_readable(published.get(name)), meta) for name, meta in local})
    except (OSError, ValueError) as error:
        raise EnvironmentFault(
            "FILES_NOT_FLUSHED",
            "Files of a landing could not be written to the disk for good, so nothing was published.",
            detail=str(error),
            hint="Look at the disk of the warehouse, and whether something deletes files there.",
            retryable=True,
        ) from error


def _readable(pointer: Pointer | None) -> TableMeta | None:
    """Return a published state; None where it is damaged, and what was written replaces it."""
    try:
        return None if pointer is None else metadata(pointer.metadata_location)
    except HeadraceError:
        return None
