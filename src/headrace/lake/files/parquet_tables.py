"""Makes Parquet files a table of Iceberg's, for readers that reach them by Iceberg alone."""

from __future__ import annotations

from headrace.lake.files.file_access import file_system, properties_at

METADATA = "table"
"""The folder, below that of the files, which has what makes them a table."""


def over_files(folder: str) -> str:
    """Write an Iceberg table's metadata over Parquet files; return its metadata file.

    The files stay as they are, and their columns are found by name. No catalog knows the table.

    Args:
        folder: A path or URL with at least one file, all of the same columns.

    Raises:
        OSError: The store fails.
    """
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSelector
    from pyiceberg.catalog.memory import InMemoryCatalog

    files, path = file_system(folder)
    names = sorted(f.base_name for f in files.get_file_info(FileSelector(path)) if f.extension == "parquet")
    catalog = InMemoryCatalog("files", warehouse=folder, **properties_at(folder))
    try:
        catalog.create_namespace("files")
        table = catalog.create_table(
            "files.all",
            pq.read_schema(f"{path}/{names[0]}", filesystem=files),
            location=f"{folder}/{METADATA}",
            properties={"write.metadata.metrics.default": "none"},  # the files have no statistics to be read
        )
        table.add_files([f"{folder}/{name}" for name in names], check_duplicate_files=False)
        return table.metadata_location
    finally:
        catalog.close()
