"""Interface of captured changes that are landed, the same for every kind of database.

A *mirror* is a table of the lake that follows a table of a database: state and change log, as of a stream table whose
query is the identity. A capture reads changes up to a position, makes them durable as files, and lets go of them at the
database only when it is told that they are published.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.names import TableName

Json = Mapping[str, Any]


class LandedTable(Protocol):
    """A mirror's part of a landing."""

    @property
    def name(self) -> TableName:
        """Return the mirror."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the mirror's columns from now on."""
        ...

    @property
    def renamed(self) -> Mapping[str, str]:
        """Return columns that have a new name: old to new."""
        ...

    @property
    def key(self) -> tuple[str, ...] | None:
        """Return the columns that identify rows; None for a bag."""
        ...

    @property
    def details(self) -> Json:
        """Return the details that the catalog keeps of the mirror from now on."""
        ...

    @property
    def replaced(self) -> bool:
        """Return whether this is a whole new state rather than a change."""
        ...

    @property
    def reshaped(self) -> bool:
        """Return whether the mirror's columns or details change while its rows stay."""
        ...

    @property
    def few(self) -> bool:
        """Return whether the change has so few rows that one place can hold them."""
        ...

    @property
    def folders(self) -> tuple[str, ...]:
        """Return folders of Parquet files; its queries read them by temporary views of their names."""
        ...

    def rows_sql(self) -> str:
        """Query of the new state's rows, where `replaced`."""
        ...

    def change_sql(self, before: str, *, small: bool = False) -> str:
        """Query of the change: the mirror's columns and the weight, no row twice.

        Args:
            before: Table expression of the mirror's rows before, in its columns from now on.
            small: The mirror is so small that a single task reads it in no time.
        """
        ...


@dataclass(frozen=True, slots=True)
class SharedKey:
    """A key of a mirror over the rows of several nodes, which do not know those of each other.

    Args:
        columns: The key: no two rows of the mirror may agree in it.
        node: The column that says of which node a row is.
    """

    columns: tuple[str, ...]
    node: str


@dataclass(frozen=True, slots=True)
class Landing:
    """Whole transactions of a database, to be published together.

    Args:
        tables: The mirrors they change.
        position: Where the source stands once they are published.
        keep_position: Whether the position should be kept although no mirror changes.
        transactions: How many transactions.
        rows: How many changes of rows they had, or rows of new snapshots.
        caught_up: Whether nothing more was committed when reading began.
        gone: Mirrors whose table was dropped.
        begins: The source begins here: nothing that may have been missed before counts any more.
        notices: What the user is told once it is published.
        shared_keys: Keys that must hold over all nodes once it is applied, by mirror.
        held: Nodes of the source of which nothing is landed, and why; the others are.
    """

    tables: tuple[LandedTable, ...]
    position: Json
    keep_position: bool
    transactions: int
    rows: int
    caught_up: bool
    gone: tuple[TableName, ...] = ()
    begins: bool = False
    notices: tuple[str, ...] = ()
    shared_keys: Mapping[TableName, SharedKey] = field(default_factory=dict)
    held: Mapping[str, HeadraceError] = field(default_factory=dict)


class Capture(Protocol):
    """Reads one database source."""

    @property
    def installed(self) -> bool:
        """Return whether something may be installed on the server."""
        ...

    def begin(self) -> Landing:
        """Install capture and take the first snapshot, or a new one where capture was lost.

        Raises:
            HeadraceError: It could not; `remove` takes away what was installed.
        """
        ...

    def land(self, position: Json) -> Landing:
        """Read what was committed since a position."""
        ...

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Copy some mirrors again at one cut with all others; also mirrors never landed before.

        Args:
            position: What is landed.
            mirrors: The mirrors that are taken anew; what is installed stays as it is.
        """
        ...

    def tidy(self) -> None:
        """Stop capturing tables without a mirror; the next landing finishes what is left."""
        ...

    def acknowledge(self, position: Json) -> None:
        """Allow the database to discard changes before a published position."""
        ...

    def remove(self) -> None:
        """Take away everything that was installed on the server."""
        ...

    def clear(self) -> None:
        """Remove the files of this landing; failures are ignored."""
        ...

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end.

        Args:
            age: So long nothing was written there; None removes those of all landings.
        """
        ...
