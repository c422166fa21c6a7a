"""Both databases, once per session and emptied per test; SQLite files are copies of one that is ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.databases import BACKENDS, empty
from catalog_kit.iceberg import Iceberg
from catalog_kit.ready import ready_catalog
from sqlalchemy.engine import Connection

from headrace.catalog import Catalog, StreamTable
from headrace.catalog.definitions.known_definitions import KnownDefinitions
from headrace.catalog.definitions.stream_tables import read_streams
from headrace.names import TableName


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A catalog that is up to date and empty."""
    if backend == "postgresql":
        prepared = request.getfixturevalue("postgres").prepared
        empty(prepared)
        return prepared
    return ready_catalog(tmp_path / "headrace.db")


@pytest.fixture
def fresh_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where there is no catalog yet."""
    if backend == "postgresql":
        return request.getfixturevalue("postgres").fresh()
    return f"sqlite:///{tmp_path / 'fresh.db'}"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def catalog(url: str, clock: ManualClock) -> Iterator[Catalog]:
    with Catalog.open(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def iceberg(url: str) -> Iceberg:
    return Iceberg(url)


@pytest.fixture(autouse=True)
def kept_definitions_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare stream tables that the catalog has kept with those that it would read, whenever it is asked."""
    every, one = KnownDefinitions.all, KnownDefinitions.one

    def judged(self: KnownDefinitions, connection: Connection) -> tuple[StreamTable, ...]:
        found = every(self, connection)
        assert found == read_streams(connection)
        return found

    def one_judged(self: KnownDefinitions, connection: Connection, name: TableName) -> StreamTable | None:
        found = one(self, connection, name)
        assert (() if found is None else (found,)) == read_streams(connection, name)
        return found

    monkeypatch.setattr(KnownDefinitions, "all", judged)
    monkeypatch.setattr(KnownDefinitions, "one", one_judged)
