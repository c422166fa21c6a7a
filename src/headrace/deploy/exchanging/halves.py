"""Describes what becomes of each relation of an exchange: as data, before it is published."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.catalog import FrontierMove, Green, SchedulingState, Status, Version
from headrace.definitions.details import Details
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.cut.cut import Head
from headrace.refresh.gather_facts import TableState
from headrace.refresh.run_context import Outcome

NOTHING_SKIPPED: Mapping[TableName, SchedulingState] = {}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two generations of a stream table.

    Args:
        green: What the catalog has of them.
        public: The public one.
        other: The one beside it.
        other_name: What that is called afterwards.
    """

    green: Green
    public: TableState
    other: TableState
    other_name: TableName


@dataclass(frozen=True, slots=True)
class Move:
    """A stream table that becomes public, or is public no longer: only its name is another one.

    Args:
        green: What the catalog has of it.
        state: The stream table.
        name: What it is called afterwards.
    """

    green: Green
    state: TableState
    name: TableName

    @property
    def arrives(self) -> bool:
        """Return whether it becomes public."""
        return self.name == self.green.original


@dataclass(frozen=True, slots=True)
class Half:
    """One side of an exchanged pair, or a table that moves, which is its own source.

    Args:
        state: What the catalog says of the relation.
        name: What it is called afterwards.
        source: The generation whose definition and rows it receives.
        details: Its definition then.
        outcome: What was written for it.
        altered: Whether its columns are others than before.
    """

    state: TableState
    name: TableName
    source: TableState
    details: Details
    outcome: Outcome
    altered: bool

    @property
    def version(self) -> int:
        """Return its version afterwards."""
        before = -1 if self.state.newest is None else self.state.newest.version
        return before + self.moved

    @property
    def moved(self) -> bool:
        """Return whether its rows or columns change; equal rows make no new version."""
        return self.altered or bool(self.outcome.inserted + self.outcome.deleted)

    @property
    def staged(self) -> Head | None:
        """Return what readers that are published along read of it; None where it stays as it was."""
        meta = self.outcome.written.get(self.state.table.name)
        if meta is None or not self.moved:
            return None
        version = Version(
            relation=self.name,
            version=self.version,
            snapshot_id=meta.current_snapshot_id,
            row_count=meta.row_count,
            committed_at=dt.datetime.now(dt.UTC),
            publication_id=None,
            table_uuid=meta.uuid,
        )
        log = self.state.table.log
        return Head(version, meta, staged=True, log=self.outcome.written.get(log) if log is not None else None)

    @property
    def renamed(self) -> bool:
        """Return whether only its name is another one."""
        return self.source is self.state


@dataclass(frozen=True, slots=True)
class Halves:
    """All that an exchange publishes.

    Args:
        pairs: By pair, the public half and the other one.
        arriving: What becomes public.
        leaving: What is public no longer.
    """

    pairs: tuple[tuple[Half, Half], ...]
    arriving: tuple[Half, ...] = ()
    leaving: tuple[Half, ...] = ()

    def __iter__(self) -> Iterator[Half]:
        """Yield all of them."""
        for pair in self.pairs:
            yield from pair
        yield from self.arriving
        yield from self.leaving

    def beside(self, half: Half) -> tuple[Half, ...]:
        """Return the generation that a half is of afterwards."""
        public = (*(one for one, _ in self.pairs), *self.arriving)
        if any(one is half for one in public):
            return public
        return (*(other for _, other in self.pairs), *self.leaving)


def frontier_move(
    half: Half, halves: Halves, scheduling: Mapping[TableName, SchedulingState] = NOTHING_SKIPPED
) -> FrontierMove | None:
    """Return the frontier that a generation receives, in terms of the relations it reads then.

    Rows that were skipped go with the contents that lack them. What is only renamed keeps its mark itself.

    None where the other one has not read the newest version of a table that is exchanged along: no version of the
    relation read from then on has these rows, so that it is loaded anew by its next refresh. Likewise where there was
    no frontier.
    """
    if half.renamed and half.state.table.status is Status.NEW:
        return None
    called = {h.source.table.name: h for h in halves.beside(half)}
    moved: dict[TableName, int] = {}
    for source, version in half.source.frontier.items():
        along = called.get(source)
        if along is None:
            moved[source] = version
        elif along.renamed:
            moved[along.name] = version
        elif along.source.newest is not None and along.source.newest.version == version:
            moved[along.name] = along.version
        else:
            return None
    given = half.source.table
    behind = given.companion_behind if given.companion is not None else None
    known = scheduling.get(given.name)
    if known is None or half.renamed or known.skipped_at is None:
        return FrontierMove(half.name, Frontier(moved), companion_behind=behind)
    rows, since = known.skipped_rows, known.skipped_at
    return FrontierMove(half.name, Frontier(moved), skipped=rows, skipped_since=since, companion_behind=behind)
