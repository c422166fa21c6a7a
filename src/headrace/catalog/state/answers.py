"""Single questions to the catalog, each answered from a read transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from headrace.catalog.coordination.lease_time import LeaseTime
from headrace.catalog.database import Database
from headrace.catalog.definitions.known_definitions import KnownDefinitions
from headrace.catalog.state.reader import Reader

Given = ParamSpec("Given")
Found = TypeVar("Found")


def _alone(ask: Callable[Concatenate[Reader, Given], Found]) -> Callable[Concatenate[Answers, Given], Found]:
    """Wrap a reader's method to run in a transaction of its own; it keeps its docstring."""

    @wraps(ask)
    def answer(self: Answers, /, *args: Given.args, **more: Given.kwargs) -> Found:
        with self.reading() as reader:
            return ask(reader, *args, **more)

    return answer


class Answers:
    """Reading methods of `Catalog`, each in a transaction of its own.

    Answers to two calls may be of two states, those of one `reading()` are not.

    Args:
        database: The opened database.
        lease_time: Tells by which time leases expire.
    """

    def __init__(self, database: Database, lease_time: LeaseTime) -> None:
        self._database = database
        self._lease_time = lease_time
        self._definitions = KnownDefinitions()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open a reader whose answers all come from one state of the catalog."""
        with self._database.read() as connection:
            yield Reader(connection, self._lease_time, self._definitions)

    stream_tables = _alone(Reader.stream_tables)
    stream_table = _alone(Reader.stream_table)
    find_stream_table = _alone(Reader.find_stream_table)
    relations = _alone(Reader.relations)
    dependencies = _alone(Reader.dependencies)
    frontier = _alone(Reader.frontier)
    frontiers = _alone(Reader.frontiers)
    newest_versions = _alone(Reader.newest_versions)
    version_at = _alone(Reader.version_at)
    versions_at = _alone(Reader.versions_at)
    versions = _alone(Reader.versions)
    versions_as_of = _alone(Reader.versions_as_of)
    publication = _alone(Reader.publication)
    publications = _alone(Reader.publications)
    history = _alone(Reader.history)
    last_refreshes = _alone(Reader.last_refreshes)
    pointers = _alone(Reader.pointers)
    metadata_outside = _alone(Reader.metadata_outside)
    namespaces = _alone(Reader.namespaces)
    leases = _alone(Reader.leases)
    held_resources = _alone(Reader.held_resources)
    dirty_staging = _alone(Reader.dirty_staging)
    foreign_writes = _alone(Reader.foreign_writes)
    greens = _alone(Reader.greens)
    auto_deployments = _alone(Reader.auto_deployments)
    green_loads = _alone(Reader.green_loads)
    gates = _alone(Reader.gates)
    watermark_groups = _alone(Reader.watermark_groups)
