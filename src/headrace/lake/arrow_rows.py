"""Rows of an Iceberg table as Arrow batches, read without Spark.

A file is in memory at a time, with what is left of it by deletion vectors and position deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.errors import EnvironmentFault
from headrace.lake.files.file_access import properties_at
from headrace.lake.tables import VERSION
from headrace.names import WEIGHT

if TYPE_CHECKING:
    import pyarrow as pa


def state_rows(metadata_location: str, snapshot_id: int | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table at a snapshot.

    Args:
        metadata_location: A metadata file that knows the snapshot.
        snapshot_id: The snapshot; None for a table without one.
        columns: The columns to read, in this order.

    Raises:
        EnvironmentFault: `LAKE_UNREADABLE`.
    """
    if snapshot_id is not None:
        yield from _read(metadata_location, snapshot_id, tuple(columns), None)


def log_rows(metadata_location: str, columns: Sequence[str], after: int, through: int) -> Iterator[pa.RecordBatch]:
    """Yield what a change log has between two versions: its columns, and last the weight.

    Args:
        metadata_location: A metadata file of the log.
        columns: The columns to read, in this order.
        after: The version from which on, itself not included.
        through: The last version.

    Raises:
        EnvironmentFault: `LAKE_UNREADABLE`.
    """
    between = f"{VERSION} > {after} AND {VERSION} <= {through}"
    yield from _read(metadata_location, None, (*columns, WEIGHT), between)


def _read(location: str, snapshot: int | None, columns: tuple[str, ...], where: str | None) -> Iterator[pa.RecordBatch]:
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import ALWAYS_TRUE, StaticTable

    try:
        table = StaticTable.from_metadata(location, properties_at(location))
        scan = table.scan(where or ALWAYS_TRUE, selected_fields=columns, snapshot_id=snapshot)
        reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
        for task in scan.plan_files():
            for batch in reader.to_record_batches([task]):
                yield batch.select(list(columns))
    except (OSError, ValueError, NoSuchTableError) as error:
        raise EnvironmentFault(
            "LAKE_UNREADABLE",
            f"Files of a stream table cannot be read at {location}.",
            detail=str(error),
            hint="Check access to the warehouse: sinks read it from this process, without Spark.",
            retryable=True,
        ) from error
