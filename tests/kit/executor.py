"""What an engine must offer to be tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.algebra.schema import Column
from kit.case import Row


class Executor(Protocol):
    """Runs Spark SQL over tables of one namespace."""

    def table(self, name: str) -> str:
        """The SQL expression of a table made by `define` or `keep`."""

    def define(self, name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """Make a table with the given contents, or replace it."""

    def keep(self, name: str, sql: str) -> int:
        """Make a table of a query's result, or replace it; the query may read the table it replaces.

        Returns:
            The number of its rows.
        """

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query."""

    def describe(self, sql: str) -> tuple[Column, ...]:
        """The columns of a query, types as Spark names them."""
