"""Sources as users have them, as far as no Spark is needed: what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer

from headrace.api import Headrace
from headrace.catalog import Catalog, Mirror, Publication, SourceMove, SourceStatus
from headrace.config import Settings
from headrace.database_sources import Sources
from headrace.engine.ports import Runner
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Event, Events, Notice, RefreshFailed
from headrace.names import TableName
from headrace.sources.postgres.opening import KIND, options_of


class NoSpark:
    """A session whose Spark does not start; something happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    def runner(self) -> Runner:
        self.meanwhile()
        raise EnvironmentFault("SPARK_LOST", "The connection to Spark was lost.", retryable=True)


class House:
    """A project without Spark, and a database with a table."""

    def __init__(self, server: LogicalServer, folder: Path) -> None:
        self.url = server.fresh()
        self.database = self.url.partition("?")[0].rpartition("/")[2]
        self._server = server
        self.told: list[Event] = []
        self.events = Events()
        self.events.subscribe(self.told.append)
        self.settings = Settings(folder, f"sqlite:///{folder / 'headrace.db'}", str(folder / "warehouse"))
        self.catalog = Catalog.open(self.settings.catalog_url, events=self.events)
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)")

    def sources(self, meanwhile: Callable[[], object] = lambda: None) -> Sources:
        return Sources(self.catalog, NoSpark(meanwhile), self.events, self.settings)  # type: ignore[arg-type]

    def reachable(self, yes: bool) -> None:
        with self._server.connect("postgres") as db:
            db.execute(f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS {yes}")

    def slots(self) -> int:
        with self._server.connect("postgres") as db:
            found = "SELECT count(*) FROM pg_replication_slots WHERE database = %s"
            return int(str(db.execute(found, (self.database,)).fetchall()[0][0]))


@pytest.fixture
def house(server: LogicalServer, tmp_path: Path) -> House:
    return House(server, tmp_path)


def test_a_source_that_cannot_be_created_leaves_nothing(house: House) -> None:
    seen: list[int] = []
    with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
        house.sources(lambda: seen.append(house.slots())).create("shop", house.url, ["orders"])
    assert (seen, house.slots(), house.sources().list()) == ([1], 0, ())


def test_a_slot_that_cannot_be_removed_is_known(house: House) -> None:
    with pytest.raises(EnvironmentFault, match="SPARK_LOST"):
        house.sources(lambda: house.reachable(False)).create("shop", house.url, ["orders"])
    (left,) = house.sources().list()
    assert (left.name, left.status, house.slots()) == ("shop", SourceStatus.STOPPED, 1)
    assert any(isinstance(e, Notice) and "headrace source drop shop" in e.message for e in house.told)
    with pytest.raises(HeadraceError, match="SOURCE_NOT_LOADED"):
        house.sources().land("shop")
    house.reachable(True)
    house.sources().drop("shop")
    assert (house.sources().list(), house.slots()) == ((), 0)


def test_a_failure_is_told_once(house: House) -> None:
    options = options_of("shop", house.url, {"orders": ("public", "orders")})
    name = TableName("lake", ("shop",), "orders")
    house.catalog.create_source("shop", KIND, options, [Mirror(name, name)])
    house.catalog.publish(Publication(sources=(SourceMove("shop", None, {"system": "1", "timeline": 1}, (), True),)))
    hr = Headrace(house.settings)
    hr.events.subscribe(house.told.append)

    def told() -> list[str]:
        with pytest.raises(HeadraceError):
            hr.sources.land("shop")
        return [e.code for e in house.told if isinstance(e, RefreshFailed)]

    house.reachable(False)
    assert told() == told() == ["SOURCE_UNREACHABLE"]
    house.reachable(True)
    assert told() == ["SOURCE_UNREACHABLE", "SOURCE_CHANGED"]
    hr.close()


def test_a_source_whose_variable_is_not_set_can_be_dropped(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TEST_NOT_SET", house.url)
    tables = {"orders": ("public", "orders"), "items": ("public", "items")}
    options = options_of("shop", "env:HEADRACE_TEST_NOT_SET", tables)
    names = [TableName("lake", ("shop",), table) for table in tables]
    house.catalog.create_source("shop", KIND, options, [Mirror(n, n) for n in names])
    house.catalog.publish(Publication(sources=(SourceMove("shop", None, {"system": "1", "timeline": 1}, (), True),)))
    monkeypatch.delenv("HEADRACE_TEST_NOT_SET")
    house.sources().drop_tables("shop", ["items"])
    assert any(isinstance(e, Notice) and "stay in the publication" in e.message for e in house.told)
    with pytest.raises(UserError, match="SOURCE_URL_INVALID"):
        house.sources().drop("shop")
    house.sources().drop("shop", force=True)
    assert house.sources().list() == ()
