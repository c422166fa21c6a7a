"""Reads what deployments go by from one state of the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.catalog import Catalog, Green, SchedulingState, Status, StreamTable, Version
from headrace.catalog.state.reader import Reader
from headrace.deploy.root_versions import RootVersions
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """The catalog at one moment.

    Args:
        reader: Reads what else is asked for, from the same state.
        greens: All second generations.
        tables: All stream tables.
        reads: By stream table, what it reads.
        newest: The newest version of every relation that has one.
        scheduling: Pauses, failures, fuses and skipped rows.
        roots: Versions of root sources.
    """

    reader: Reader
    greens: Sequence[Green]
    tables: Mapping[TableName, StreamTable]
    reads: Mapping[TableName, Sequence[TableName]]
    newest: Mapping[TableName, Version]
    scheduling: Mapping[TableName, SchedulingState]
    roots: RootVersions

    def scheduled(self, name: TableName) -> SchedulingState:
        """Return what holds a stream table up; nothing where that was never noted."""
        return self.scheduling.get(name, SchedulingState())

    def is_loaded(self, name: TableName) -> bool:
        """Return whether a stream table has rows of the definition that it has."""
        return name in self.newest and self.tables[name].status is not Status.NEW


@contextmanager
def reading_deployments(catalog: Catalog) -> Iterator[DeploymentState]:
    """Read one state of the catalog, which lasts while the block does.

    Args:
        catalog: The catalog.
    """
    scheduling = catalog.scheduling_states()
    with catalog.reading() as reader:
        yield DeploymentState(
            reader,
            reader.greens(),
            {t.name: t for t in reader.stream_tables()},
            reader.dependencies(),
            reader.newest_versions(),
            scheduling,
            RootVersions(reader),
        )
