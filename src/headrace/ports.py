"""Protocols of the engine's environment, so that it imports neither Spark nor drivers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from headrace.algebra.schema import Column
from headrace.functions import Function
from headrace.names import TableName
from headrace.semantics import Semantics


class JobCount(Protocol):
    """Counts the jobs run in a block."""

    @property
    def jobs(self) -> int | None:
        """Return the number of jobs, once the block is left; None if not known."""
        ...


class Runner(Protocol):
    """Runs Spark SQL. Every failure is a `HeadraceError`."""

    @property
    def semantics(self) -> Semantics:
        """Return the session's settings."""
        ...

    def under(self, semantics: Semantics) -> Runner:
        """Return a runner with other session settings; temporary views are not shared with it."""
        ...

    def describe(self, sql: str) -> tuple[Column, ...]:
        """Return the columns a query returns; analyses it, runs nothing."""
        ...

    def relations(self, sql: str) -> frozenset[str]:
        """Return names of tables in a query as Spark's parser finds them; none if unknown."""
        ...

    def run(self, sql: str) -> list[Any]:
        """Run a statement; the rows it returns."""
        ...

    def materialize(
        self,
        name: str,
        sql: str,
        aggregates: Mapping[str, str] | None = None,
        *,
        local: bool = False,
    ) -> dict[str, Any]:
        """Run a query once, keep its rows under a name, and return aggregates over them.

        With `local` few rows are expected, which may be held nearer to those who read them.
        """
        ...

    def append(self, table: TableName, sql: str, aggregates: Mapping[str, str]) -> dict[str, Any]:
        """Append a query's rows to a table by column names; return aggregates over them."""
        ...

    def forget(self, table: TableName, snapshots: Collection[int], *, files: bool = False) -> bool:
        """Drop snapshots, and files only they use if asked; False if the session cannot."""
        ...

    def purge(self, metadata_location: str, table: TableName) -> bool:
        """Delete all files of a table that no catalog has; False if the session cannot."""
        ...

    def kept_count(self, name: str) -> int | None:
        """Return the number of rows kept under a name; None where that is not known."""
        ...

    def literal_count(self, name: str) -> int | None:
        """Return the number of literal rows under a name; None if there are none so."""
        ...

    def hold(self, name: str, sql: str, columns: tuple[Column, ...], semantics: Semantics | None = None) -> int | None:
        """Keep a query's rows under a name if planning alone yields them, and few.

        Its columns must begin with these, of just these types. The name is one of the runner with other settings, if
        some are given.

        Returns:
            The bytes they take; None where nothing was kept.
        """
        ...

    def view(self, name: str, sql: str) -> None:
        """Give a query a temporary name; whoever reads it computes it."""
        ...

    def unlisted(self, name: str, metadata_location: str, access: Mapping[str, str]) -> AbstractContextManager[None]:
        """Give an Iceberg table that no catalog lists a temporary name inside a block.

        It is the one of a metadata file; Iceberg reaches its files by these properties.
        """
        ...

    def release(self, name: str) -> None:
        """Forget a temporary name and free what it holds."""
        ...

    def jobs(self, label: str) -> AbstractContextManager[JobCount]:
        """Count the jobs of this thread inside a block."""
        ...

    @property
    def tasks_beside(self) -> int | None:
        """Return how many tasks may read what is loaded beside others; None for any number."""
        ...

    def cancel_all(self, label: str) -> None:
        """Stop the jobs under a label, in any thread; statements fail with `CANCELLED`."""
        ...


class Session(Protocol):
    """The user's Spark session, as far as the engine depends on it."""

    @property
    def started(self) -> bool:
        """Return whether Spark runs."""
        ...

    def runner(self) -> Runner:
        """Return the runner; starts Spark when it does not run yet."""
        ...

    @property
    def restartable(self) -> bool:
        """Return whether Spark runs and is ours to start again."""
        ...

    def restart(self) -> None:
        """End Spark, in whatever state it is, and start it anew; nothing may use it meanwhile.

        Raises:
            HeadraceError: It does not start.
        """
        ...

    def namespace(self) -> tuple[str, ...]:
        """Return the current namespace in `lake`; empty when another catalog is current."""
        ...

    def catalogs(self) -> frozenset[str]:
        """Return names of the session's catalogs."""
        ...

    def functions(self) -> Mapping[str, Function]:
        """Return the project's functions by name, as they are now; the runner's sessions have them.

        Raises:
            UserError: `FUNCTION_INVALID`.
        """
        ...

    def location(self, name: TableName) -> str | None:
        """Return a table's newest metadata file in a catalog other than `lake`, or None."""
        ...
