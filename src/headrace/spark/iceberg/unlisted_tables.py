"""Reads Iceberg tables that no catalog lists, by their metadata files.

They are listed in a catalog that this session alone has, in the memory of its driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from headrace.spark.errors import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG, _NAMESPACE = "headrace_unlisted", "files"
_OURS = {
    "type": "jdbc",
    # Iceberg's own catalog in memory has its files there, too. One connection, or each would have tables of its own.
    "uri": "jdbc:sqlite::memory:",
    "clients": "1",
    "jdbc.schema-version": "V1",
    "init-catalog-tables": "true",
    "warehouse": "none",  # nothing is made there
    "cache-enabled": "false",
}

_configuring = Lock()
"""Tables of several mirrors are read at once, and two who make the namespace would fail."""


@contextmanager
def unlisted(session: SparkSession, view: str, metadata_location: str, access: Mapping[str, str]) -> Iterator[None]:
    """Have a table as a temporary view while the block runs.

    Args:
        session: Classic, or of Spark Connect.
        view: The view, quoted if need be.
        metadata_location: The table's metadata file.
        access: Properties by which Iceberg reaches it and the table's files; the first ones of a session hold.

    Raises:
        HeadraceError: The file cannot be read.
    """
    name = f"t{uuid.uuid4().hex}"
    table = f"{_CATALOG}.{_NAMESPACE}.{name}"
    with translated():
        with _configuring:
            _configure(session, access)
        session.sql(
            f"CALL {_CATALOG}.system.register_table(table => :table, metadata_file => :file)",
            {"table": f"{_NAMESPACE}.{name}", "file": metadata_location},
        )
        session.table(table).createOrReplaceTempView(view)
    try:
        yield
    finally:
        with suppress(Exception):  # a lost session has taken them along
            session.sql(f"DROP VIEW IF EXISTS {view}")
            session.sql(f"DROP TABLE IF EXISTS {table}")


def _configure(session: SparkSession, access: Mapping[str, str]) -> None:
    prefix = f"spark.sql.catalog.{_CATALOG}"
    if session.conf.get(prefix, None) is None:
        for key, value in {**access, **_OURS}.items():
            session.conf.set(f"{prefix}.{key}", value)
        session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    # always: a session that comes of this one has its options, and a memory of its own
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {_CATALOG}.{_NAMESPACE}")
