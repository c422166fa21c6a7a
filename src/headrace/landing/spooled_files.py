"""Has the files of a landing as temporary views, as its queries name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from headrace.errors import HeadraceError
from headrace.lake.files.file_access import iceberg_access
from headrace.lake.files.parquet_tables import over_files
from headrace.lake.tables import string_literal
from headrace.names import quote
from headrace.ports import Runner
from headrace.sources.spool_faults import writing


@contextmanager
def readable(runner: Runner, folders: Sequence[str]) -> Iterator[None]:
    """Have folders of Parquet files as temporary views of their names while the block runs.

    Spark reads files by Hadoop's file systems, and has none for an object store that Iceberg reaches by its own.

    Args:
        runner: Runs the queries that read them.
        folders: As `LandedTable.folders` gives them.
    """
    with ExitStack() as views:
        for folder in folders:
            access = iceberg_access(folder)
            if access is None:
                views.enter_context(_plain(runner, folder))
            else:
                with writing(folder):
                    metadata = over_files(folder)
                views.enter_context(runner.unlisted(quote(folder), metadata, access))
        yield


@contextmanager
def _plain(runner: Runner, folder: str) -> Iterator[None]:
    using = f"USING parquet OPTIONS (path {string_literal(folder)})"
    runner.run(f"CREATE OR REPLACE TEMPORARY VIEW {quote(folder)} {using}")
    try:
        yield
    finally:
        with suppress(HeadraceError):  # a lost session has taken it along
            runner.run(f"DROP VIEW IF EXISTS {quote(folder)}")
