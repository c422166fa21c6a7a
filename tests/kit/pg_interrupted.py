"""A source that is landed while everything that can break does: nothing may be lost, doubled or seen half for it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.sources.capture import Landing
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.trigger_capture import by_triggers
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured
from kit import pg_child
from kit.mirrored import Mirrors
from kit.waiting import until

Published = Callable[[Mirrors], None]
"""Told after every publication."""

BROKEN = frozenset({"SOURCE_LOST", "SOURCE_UNREACHABLE", "SOURCE_BUSY", "SOURCE_IN_MOTION", "SLOT_IN_USE"})
"""What passes when it is simply tried again."""

LOST = frozenset({"SLOT_LOST", "CAPTURE_REMOVED"})
"""What only a new snapshot cures."""

ATTEMPTS = 30


class Interrupted:
    """Follows tables, through whatever happens.

    Args:
        url: The database.
        folder: Where rows are written on the way.
        names: The mirrors' tables.
        way: How they are captured.
        chance: Chooses what happens.
        published: Told after every publication.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        names: Mapping[TableName, tuple[str, str]],
        way: pg_child.Way,
        chance: random.Random,
        published: Published,
    ) -> None:
        self._url, self._folder, self._names, self._way = url, folder, names, way
        self._chance, self._published = chance, published
        self._position: Mapping[str, Any] = {}
        self.mirrors = Mirrors()
        self.begun = 0
        self._publish(self._capture().begin())

    def land(self) -> None:
        """Land until nothing is left, whatever breaks on the way."""
        attempts = 0
        while True:
            try:
                landing = self._attempt()
            except HeadraceError as error:
                attempts += 1
                if error.code not in BROKEN | LOST or attempts >= ATTEMPTS:
                    raise
                if error.code in LOST:
                    self._begin_again()
                time.sleep(0.5 if error.code == "SLOT_IN_USE" else 0.02)  # a killed one's session ends in a while
                continue
            if landing is None or self._chance.random() < 0.2:
                continue  # killed: while reading, or before publishing
            if landing.keep_position:
                self._publish(landing)
            if self._chance.random() < 0.7:  # else killed before acknowledging
                with suppress(HeadraceError):
                    self._capture().acknowledge(self._position)
            if landing.caught_up:
                return

    def lose(self) -> None:
        """Have what captures changes lost."""
        with psycopg.connect(self._url, autocommit=True) as db:
            if not by_triggers(self._position):
                own = "FROM pg_replication_slots WHERE database = current_database()"
                db.execute(f"SELECT pg_terminate_backend(active_pid) {own} AND active")
                until(lambda: not db.execute(f"SELECT 1 {own} AND active").fetchall())
                db.execute(f"SELECT pg_drop_replication_slot(slot_name) {own} AND NOT temporary")
                return
            table = "DROP TRIGGER IF EXISTS headrace_s_u ON here"
            with suppress(psycopg.Error):  # somebody has the table
                db.execute("SET lock_timeout = '50ms'")
                db.execute(table)

    def remove(self) -> None:
        """Take away what is installed."""
        self._capture().remove()

    # ---- one landing

    def _attempt(self) -> Landing | None:
        limit, happens = self._chance.choice((20, LIMIT)), self._chance.random()
        if happens < 0.15:
            after = self._chance.uniform(0.0, 0.2)  # about as long as a landing takes
            measured = pg_child.land(
                self._way, self._what(), self._folder, self._position, limit=limit, most=30, killed_after=after
            )
            return None if measured is None else measured.landing
        if happens < 0.4:
            with self._connections_cut(self._chance.uniform(0.0, 0.05)):
                return self._capture(limit).land(self._position)
        return self._capture(limit).land(self._position)

    @contextmanager
    def _connections_cut(self, after: float) -> Iterator[None]:
        def cut() -> None:
            time.sleep(after)
            with psycopg.connect(self._url, autocommit=True) as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'headrace' AND datname = current_database()"
                )

        thread = threading.Thread(target=cut)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _begin_again(self) -> None:
        """Take a new snapshot; what passes meanwhile is left to the next attempt, which finds the same lost."""
        try:
            landing = self._capture().begin()
        except HeadraceError as error:
            if error.code not in BROKEN:
                raise
            return
        self._publish(landing)
        self.begun += 1

    def _publish(self, landing: Landing) -> None:
        self.mirrors.publish(landing)
        assert not landing.gone
        assert landing.position["changes"] >= self._position.get("changes", 0)
        self._position = landing.position
        self._published(self.mirrors)

    def _capture(self, limit: int = LIMIT) -> Any:
        capture = self._way(self._what(), Spool(str(self._folder)), limit=limit, most=30)
        capture.sweep(None)
        return capture

    def _what(self) -> Captured:
        return Captured(
            self._url, "headrace_s", self._names, known=self.mirrors.tables, position=self._position or None
        )
