"""Interface of a kind of sink; nothing above it knows a kind.

A kind has a module with an object that satisfies `SinkKind`, and its line in `registry.KINDS`. Every command loads that
module, so it imports drivers and whatever else is slow inside its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.algebra.schema import Column
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

Json = Mapping[str, Any]

Rows = Callable[[], "Iterator[pa.RecordBatch]"]
"""Reads rows, in batches; each call from the beginning."""

Changes = Callable[[int], "Iterator[pa.RecordBatch]"]
"""Reads what changed after a version: rows as `Rows` has them, and last their weight."""

Told = Callable[[str], None]
"""Told how far a delivery is, in a word."""


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """A sink as a user asks for it, in a statement, Python, the command line or a file.

    Args:
        address: Where the database is; holds no password.
        table: The table there, as the kind's grammar has it.
        key: Columns that identify a row; none for a bag.
        options: Whatever else was said, by the names that the kind gives it.
    """

    address: str
    table: str
    key: tuple[str, ...] = ()
    options: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a sink as its target has it: which version its rows are.

    Args:
        version: The version of the stream table.
        rows: How many rows that made.
        log: The change log that has what comes after it.
    """

    version: int
    rows: int
    log: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state that a sink is to be brought to.

    Args:
        sink: Its identity, a UUID; a sink that is dropped and created again has another one.
        name: Its name.
        stream: The stream table, as users write it.
        relation: The stream table's identity.
        columns: The stream table's columns.
        version: The version to bring it to.
        log: The change log that `changes` reads; another one than at the sink's position has not all of them. None
            where there is none, so that nothing tells what changed.
        log_after: The log has the changes of all versions after this one. A target that was set back, as by failing
            over to a replica, may be at an older one.
        rows: The stream table's rows at that version.
        changes: What changed from a version to that one.
        snapshot_at: Returns the snapshot of the stream table at a version, of this one and of the sink's position; 0
            for a state without one, None for a version that the catalog does not have.
        anew: Make the target equal whatever it holds, and whatever shape the stream table had before.
    """

    sink: str
    name: str
    stream: str
    relation: int
    columns: tuple[Column, ...]
    version: int
    log: str | None
    log_after: int
    rows: Rows
    changes: Changes
    snapshot_at: Callable[[int], int | None]
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a delivery; visible once its transaction is committed.

    Args:
        how: `load`, `change`, `difference`, or `nothing` where the target was there already.
        inserted: Rows that came.
        deleted: Rows that left; an update is one of each.
        rows: Rows that the target has by what was written.
        placement: Where it has them, in the kind's words; None where nothing was looked at.
    """

    how: str
    inserted: int
    deleted: int
    rows: int
    placement: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences between a target and its stream table.

    Args:
        rows: Rows of the target.
        checksum: Sum of a hash over them.
        expected: Rows of the stream table at the sink's position.
        expected_checksum: The same of these.
        missing: Rows that the target should have and has not.
        unexpected: Rows that it has and should not.
        examples: Some of either, as text.
    """

    rows: int
    checksum: int
    expected: int
    expected_checksum: int
    missing: int
    unexpected: int
    examples: tuple[str, ...]


class Target(Protocol):
    """A transaction in a sink's database; nothing of it shows before it is committed."""

    def position(self, sink: str) -> Position | None:
        """Return a sink's position, locked against others who write; None before its first."""
        ...

    def deliver(self, options: Json, delivery: Delivery) -> Written:
        """Write what a sink lacks, and its new position.

        Raises:
            HeadraceError: It cannot be written; the transaction is broken.
        """
        ...

    def compare(self, options: Json, columns: Sequence[Column], rows: Rows) -> Compared:
        """Compare a sink's table with rows; writes nothing."""
        ...

    def forget(self, sink: str) -> None:
        """Forget a sink's position; the rows stay."""
        ...

    def undo_load(self, options: Json, sink: str) -> None:
        """Take back a sink's first load, if it was committed.

        Its position goes, and its rows, unless there are rows of others among them, or were before. Waits for a
        transaction that writes the sink and has not ended.
        """
        ...


class SinkKind(Protocol):
    """A kind of sink."""

    @property
    def name(self) -> str:
        """Return its name, as catalogs have it; statements write it in capitals: `INTO POSTGRES`."""
        ...

    @property
    def create_form(self) -> str:
        """Return the form of its CREATE SINK, as errors show it."""
        ...

    @property
    def stopping(self) -> frozenset[str]:
        """Return codes of errors that stop a sink until somebody decides: no retry helps."""
        ...

    @property
    def alterable(self) -> frozenset[str]:
        """Return names of options that may change while the sink lives."""
        ...

    def read_request(self, cursor: StatementCursor) -> SinkRequest:
        """Read what follows `INTO KIND` in a statement, up to `SCHEDULE` or its end.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        ...

    def read_change(self, cursor: StatementCursor) -> Json:
        """Read options that follow `ALTER SINK name SET`.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        ...

    def options(self, request: SinkRequest) -> Json:
        """Make the options of a new sink, JSON that the catalog keeps; holds no secrets.

        Raises:
            UserError: Something is wrong with the request.
        """
        ...

    def database(self, options: Json) -> str:
        """Return what is the same for sinks that one transaction can write."""
        ...

    def address(self, options: Json) -> str:
        """Return where the database is, as lists show it."""
        ...

    def table(self, options: Json) -> str:
        """Return the target, as lists show it and `options` reads it."""
        ...

    def check(self, options: Json, columns: Sequence[Column], captured: Sequence[Captured]) -> None:
        """Check that a target can take rows of some columns; changes nothing.

        Args:
            options: The sink's.
            columns: The stream table's.
            captured: What sources of the same project capture, which must not be a sink's target.

        Raises:
            HeadraceError: It cannot.
        """
        ...

    def writing(self, options: Json, told: Told) -> AbstractContextManager[Target]:
        """Open a transaction in a sink's database, committed at the end of the block.

        Raises:
            EnvironmentFault: `SINK_UNREACHABLE`, `SINK_LOGIN_REFUSED`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Captured:
    """Tables that a source of the project captures.

    Args:
        source: The source.
        address: Where its database is.
        tables: Its tables, as users write them.
    """

    source: str
    address: str
    tables: tuple[str, ...]
