"""A project without Spark, whose sources are real all the same: what becomes of them as far as no mirror is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
from catalog_kit.clock import ManualClock
from catalog_kit.ready import ready_catalog

from headrace.api.database_sources import Sources
from headrace.catalog import Catalog, Mirror, Publication, SourceMove
from headrace.config import Settings
from headrace.errors import EnvironmentFault
from headrace.events import Event, Events
from headrace.names import TableName
from headrace.ports import Runner
from headrace.sources.postgres.postgres_kind import KIND
from headrace.sources.postgres.remote_tables import to_json
from headrace.sources.postgres.setup.open_capture import options_of
from kit.logical import LogicalServer
from kit.mirrored import Follower


class NoSpark:
    """A session whose Spark does not start; something happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    def runner(self) -> Runner:
        self.meanwhile()
        raise EnvironmentFault("SPARK_LOST", "The connection to Spark was lost.", retryable=True)


class House:
    """A project without Spark, and a database with a table."""

    def __init__(self, server: LogicalServer, folder: Path, clock: ManualClock | None = None) -> None:
        self.url = server.fresh()
        self.database = self.url.partition("?")[0].rpartition("/")[2]
        self._server = server
        self.told: list[Event] = []
        self.events = Events()
        self.events.subscribe(self.told.append)
        self.settings = Settings(folder, ready_catalog(folder / "headrace.db"), str(folder / "warehouse"))
        self.catalog = Catalog.open(self.settings.catalog_url, events=self.events, clock=clock)
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

    def follow(self, name: str, follower: Follower, **options: object) -> None:
        """Have a source that stands where a follower does."""
        tables = {n.table: of for n, of in follower.names.items()}
        kept = {**options_of(name, follower.url, tables), "slot": follower.slot, **options}
        names = {TableName("lake", (name,), n.table): t for n, t in follower.mirrors.tables.items()}
        mirrors = tuple(Mirror(n, n, to_json(t)) for n, t in names.items())
        self.catalog.create_source(name, KIND, kept, mirrors)
        self.catalog.publish(Publication(sources=(SourceMove(name, None, follower.position, mirrors, True),)))
