"""Opens connections to the project, and makes Headrace's errors dbt's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.contracts.connection import Connection as DbtConnection
from dbt.adapters.contracts.connection import ConnectionState
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.headrace.cursors import Connection
from dbt.adapters.headrace.failures import as_dbt_error
from dbt.adapters.headrace.projects import open_project
from dbt.adapters.spark import SparkConnectionManager
from dbt_common.exceptions import DbtDatabaseError


class HeadraceConnectionManager(SparkConnectionManager):
    """Hands out connections to the one project of the run."""

    TYPE = "headrace"

    @classmethod
    def open(cls, connection: DbtConnection) -> DbtConnection:
        """Open a connection; the first one of a process opens the project and starts Spark."""
        if connection.state == ConnectionState.OPEN:
            return connection
        with as_dbt_error(FailedToConnectError):
            profile = connection.credentials
            connection.handle = Connection(open_project(profile.root, serve=profile.serve))
        connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turn errors of a statement into dbt's, without a stack trace."""
        with as_dbt_error(DbtDatabaseError):
            yield
