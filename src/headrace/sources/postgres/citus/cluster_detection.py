"""Captures from the log of one server or of a Citus cluster, whichever the tables need.

A source of which all tables are plain local ones is captured from its server alone, whether Citus is there or not. As
soon as a table of it is one of Citus' when the source begins, it is captured from all nodes. The position tells later.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.postgres.citus.citus_capture import CitusCapture, by_cuts, on_all_nodes
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.server import server, tables
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture


class LogCapture:
    """Captures one source from the log, wherever its tables are; see `Capture`.

    Args:
        captured: What is captured.
        spool: Where rows are written.
        limit: Messages of one landing from one server, about; one from a cluster has all up to its cut.
        most: Changes that are held in memory at most.
        told: Told how far a snapshot is.
    """

    def __init__(
        self,
        captured: Captured,
        spool: Spool,
        *,
        limit: int = LIMIT,
        most: int = MOST,
        told: Told = lambda _: None,
    ) -> None:
        self._what = captured
        self._server = PostgresCapture(captured, spool, limit=limit, most=most, told=told)
        self._cluster = CitusCapture(captured, spool, most=most, told=told)

    @property
    def installed(self) -> bool:
        """Return whether something may be installed on a server."""
        return self._server.installed or self._cluster.installed

    def begin(self) -> Landing:
        """Install capture where the tables are, and take the first snapshot."""
        if self._in_shards():
            return self._cluster.begin()
        if self._on_all_nodes():  # no table is in shards any more: nothing of ours stays on the workers
            self._cluster.remove()
        return self._server.begin()

    def land(self, position: Json) -> Landing:
        """Read what was committed since a position."""
        return self._now(position).land(position)

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Copy some mirrors again at one cut with all others."""
        return self._now(position).renew(position, mirrors)

    def tidy(self) -> None:
        """Stop capturing tables without a mirror."""
        self._now(self._what.position).tidy()

    def acknowledge(self, position: Json) -> None:
        """Allow the servers to discard changes before a published position."""
        self._now(position).acknowledge(position)

    def remove(self) -> None:
        """Take away everything that was installed, also by a beginning that failed."""
        if self._on_all_nodes():
            self._cluster.remove()
        else:
            self._server.remove()

    def clear(self) -> None:
        """Remove the files of this landing, but for those of an unfinished first snapshot."""
        self._cluster.clear_nodes()
        self._server.clear()

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end."""
        self._server.sweep(age)

    def _now(self, position: Json | None) -> PostgresCapture | CitusCapture:
        return self._cluster if by_cuts(position) else self._server

    def _in_shards(self) -> bool:
        with connected(self._what.url) as connection:
            names = list(self._what.names.values())
            oids = [t.oid for t in self._what.known.values()]
            version = server(connection).version
            found = (*tables(connection, version, names=names), *tables(connection, version, oids=oids))
            return any(f.sharded for f in found)

    def _on_all_nodes(self) -> bool:
        """Return whether something may be installed on all nodes, whatever the position is one of."""
        if by_cuts(self._what.position):
            return True
        with connected(self._what.url) as connection:
            if on_all_nodes(connection, self._what.slot):
                return True
            begun = self._what.position is None and bool(slots.published(connection, self._what.slot))
        return begun and self._in_shards()  # by a version that wrote no comment on the publication
