"""Reads Iceberg tables that no catalog lists, by their metadata files.

They are listed in a catalog that this session alone has, in the memory of its driver, and that reaches files as
`staging` does.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from headrace.names import STAGING
from headrace.spark.errors import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG, _NAMESPACE = "headrace_unlisted", "files"
_OURS = {
    # Iceberg's own catalog in memory has its files there, too. One connection, or each would have tables of its own.
    "uri": "jdbc:sqlite::memory:",
    "clients": "1",
    "init-catalog-tables": "true",
}
_DATABASE = ("uri", "jdbc.user", "jdbc.password", "init-catalog-tables", "table-default.")
"""Beginnings of what `staging` has to reach its database, and to make tables."""

_configuring = Lock()
"""Tables of several mirrors are read at once, and two who make the namespace would fail."""


@contextmanager
def unlisted(session: SparkSession, view: str, metadata_location: str) -> Iterator[None]:
    """Have a table as a temporary view while the block runs.

    Args:
        session: Classic, or of Spark Connect.
        view: The view, quoted if need be.
        metadata_location: The table's metadata file.

    Raises:
        HeadraceError: The file cannot be read.
    """
    name = f"t{uuid.uuid4().hex}"
    table = f"{_CATALOG}.{_NAMESPACE}.{name}"
    with translated():
        with _configuring:
            _configure(session)
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


def _configure(session: SparkSession) -> None:
    prefix, theirs = f"spark.sql.catalog.{_CATALOG}", f"spark.sql.catalog.{STAGING}"
    if session.conf.get(prefix, None) is None:
        given = {k.removeprefix(theirs): v for k, v in session.conf.getAll.items() if k.startswith(theirs)}
        reached = {k: v for k, v in given.items() if not k.removeprefix(".").startswith(_DATABASE)}
        for key, value in {**reached, **{f".{k}": v for k, v in _OURS.items()}}.items():
            session.conf.set(prefix + key, value)
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {_CATALOG}.{_NAMESPACE}")
