"""Captures tables of a Citus cluster, whatever their placement, from cut to cut.

The position is a cut: its number, and of each node the position of its mark (`cuts.py`). A landing has what the nodes
committed between two cuts, so that every published state is one that no distributed transaction straddles. Distributed
tables are read from every node, reference tables and local ones from the coordinator.

What the streams do not tell in order (a table that was truncated, altered, or whose shards went where no slot was) is
copied again, at a new cut with all others (`placement_changes.py`).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from psycopg import sql

from headrace.names import TableName
from headrace.sources.capture import Json, Landing
from headrace.sources.interruption import side_by_side
from headrace.sources.postgres.citus.cluster import Cluster, cluster
from headrace.sources.postgres.citus.cluster_catalog import (
    COORDINATOR,
    Placement,
    marks,
    nodes_added,
    placements,
    with_dropped_columns,
)
from headrace.sources.postgres.citus.cluster_requirements import check_cluster, check_node, check_tables
from headrace.sources.postgres.citus.cuts import Cut, take_cut
from headrace.sources.postgres.citus.node_log import (
    CoordinatorLog,
    NodeChanges,
    NodeLog,
    flush,
    narrower,
    on_node,
    partitions_on,
)
from headrace.sources.postgres.citus.placement_changes import moved, not_followed, touched_twice
from headrace.sources.postgres.citus.shard_copy import copied
from headrace.sources.postgres.connection import Connection, in_motion
from headrace.sources.postgres.health import stop_reasons
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import Found, server
from headrace.sources.postgres.setup import preflight
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.spool.landed_table import PostgresTable
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.table_names import NAMES, with_names
from headrace.sources.postgres.wal import log_witness, slots
from headrace.sources.postgres.wal.followed_ddl import widened
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import IDLE_BYTES, Captured, PostgresCapture

Result = TypeVar("Result")

Looked = tuple[dict[str, str], int]
"""Marks of where tables are at a cut, and the number of nodes that the cluster has had."""


_MARKS = "partitions"
"""In a worker's position: what was seen there of partitioned tables before it was read, or copied."""

OF_ALL_NODES = "Headrace captures from all nodes of the Citus cluster."
"""Comment on the coordinator's publication as long as other nodes may have slots and publications, too."""


def on_all_nodes(connection: Connection, publication: str) -> bool:
    """Return whether other nodes may have slots, too, also by a beginning that did not end.

    Args:
        connection: To the coordinator, or a server that is none.
        publication: The source's publication.
    """
    comment = "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s"
    return connection.execute(comment, (publication,)).fetchone() == (OF_ALL_NODES,)


def by_cuts(position: Json | None) -> bool:
    """Return whether a position is a cut of a cluster."""
    return position is not None and "cut" in position


class CitusCapture:
    """Captures one source from all nodes of a cluster; see `Capture`.

    Args:
        captured: What is captured; the connection string is the coordinator's.
        spool: Where copied rows are written.
        most: Changes of a node that are held in memory at most.
        told: Told how far a snapshot is.
    """

    def __init__(
        self,
        captured: Captured,
        spool: Spool,
        *,
        most: int = MOST,
        told: Told = lambda _: None,
    ) -> None:
        self._what, self._spool, self._most, self._told = captured, spool, most, told
        self._spools: list[Spool] = []
        self.installed = False
        self.cut_seconds: float | None = None
        self._partitions: dict[int, dict[str, str]] = {}

    # ---- the protocol

    def begin(self) -> Landing:
        """Install publication and slot on every node, and take the first snapshot at a cut."""
        position: dict[str, Any] = {"cut": self._number, "changes": self._counted, "nodes": {}}
        with cluster(self._what.url) as of:
            head = self._head(of)
            now = server(of.coordinator)
            found = head._required(of.coordinator, now, head._begun_with(of.coordinator, now), anew=True)
            self.installed = True
            self._take_away(of)
            landing = self._copied(of, position, dict(found), {}, first=True)
        return replace(landing, notices=head._notices, begins=True)

    def land(self, position: Json) -> Landing:
        """Read changes committed since a cut, up to a new one."""
        with cluster(self._what.url) as of:
            self._require_capture(of)
            head = self._head(of, self._what.known)
            now = server(of.coordinator)
            found = head._tables(of.coordinator, now.version, self._oids)
            same = {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])}
            wider = {f.table.oid for f in found if f.table.oid not in same and widened(f, self._known[f.table.oid])}
            stale: dict[TableName, Found | None] = head._stale(of.coordinator, now, same | wider, found)
            joined = self._joined(of, position, found)
            emptied = self._emptied(of, position, found)
            until = self._readable(of)
            if (
                not stale
                and not wider
                and not joined
                and not emptied
                and self._recorded(position)
                and len(of.nodes) == len(position["nodes"])
                and not self._waiting(of, position, until)
            ):
                landing: Landing | Collection[TableName] = Landing((), dict(position), False, 0, 0, True)
            else:
                landing = emptied if stale or emptied else self._followed(of, position, found, joined, wider)
            if not isinstance(landing, Landing):
                again = {n: f for n in landing if (f := self._found(n, found)) is not None}
                again |= {n: f for n in self._named(wider) if (f := self._found(n, found)) is not None}
                landing = self._copied(of, position, {**stale, **again}, joined)
            return with_names(of.coordinator, landing, position, self._what.known, [f.table for f in found])

    def renew(self, position: Json, mirrors: Collection[TableName]) -> Landing:
        """Copy some mirrors again at one cut with all others; also ones never landed before."""
        with cluster(self._what.url) as of:
            self._require_capture(of)
            head = self._head(of, self._what.known)
            now = server(of.coordinator)
            wanted = head._required(of.coordinator, now, mirrors)
            found = head._tables(of.coordinator, now.version, self._oids)
            same = {f.table.oid for f in found if f.table.same_shape(self._known[f.table.oid])}
            same -= {f.table.oid for f in wanted.values()}
            stale = {n: f for n, f in head._stale(of.coordinator, now, same, found).items() if n not in wanted}
            joined = self._joined(of, position, found)
            landing = self._copied(of, position, {**stale, **wanted}, joined)
            landing = with_names(of.coordinator, landing, position, self._what.known, [f.table for f in found])
            return replace(landing, notices=(*landing.notices, *head._notices))

    def acknowledge(self, position: Json) -> None:
        """Move the slot of every node."""
        with cluster(self._what.url) as of:
            for group, at in position["nodes"].items():
                if int(group) in of.connections:
                    slots.advance(of.connections[int(group)], self._what.slot, at["lsn"])

    def tidy(self) -> None:
        """Take tables that have no mirror out of the publications."""
        with cluster(self._what.url) as of:
            for group, connection in of.connections.items():
                known = on_node(connection, self._what.known, ()) if group != COORDINATOR else self._what.known
                oids = {str(t.oid) for t in known.values()}
                strange = slots.published(connection, self._what.slot).keys() - oids
                slots.withdraw(connection, self._what.slot, [int(oid) for oid in strange])

    def remove(self) -> None:
        """Drop slot and publication on every node, wherever they are."""
        with cluster(self._what.url) as of:
            self._take_away(of)
        self.clear()

    def clear(self) -> None:
        """Remove this landing's files."""
        self._spool.clear()
        self.clear_nodes()

    def clear_nodes(self) -> None:
        """Remove the files of what was read from each node."""
        for spool in self._spools:
            spool.clear()

    def sweep(self, age: dt.timedelta | None) -> None:
        """Remove the files of landings that did not end."""
        self._spool.sweep(age)

    # ---- changes

    def _followed(
        self,
        of: Cluster,
        position: Json,
        found: Collection[Found],
        joined: Mapping[str, Json],
        wider: Collection[int],
    ) -> Landing | Collection[TableName]:
        """Land up to a new cut; or return the mirrors that must be copied again.

        Args:
            of: The cluster.
            position: What is landed.
            found: The tables as they are, all of them.
            joined: Nodes that are new, with where their slots begin.
            wider: Tables that have gained columns.
        """
        tables = {n: f.table for n, t in self._what.known.items() for f in found if f.table.oid == t.oid}
        cut = self._cut(of, [t.oid for t in tables.values()])
        placed, added = cut.seen
        same_nodes = not joined and self._same_nodes(of, position) and added == position.get("added", added)
        before = position["placements"]
        if lost := not_followed(before, placed, same_nodes=same_nodes):
            return [n for n, t in tables.items() if str(t.oid) in lost]
        positions = {**position["nodes"], **joined}
        read = self._read(of, positions, tables, {}, {}, cut, placed, self._named(wider))
        uncertain = {n for changes in read.values() for n in changes.unsure}
        for name in (n for n, t in tables.items() if str(t.oid) in moved(before, placed)):
            if touched_twice([changes.keys[name] for changes in read.values() if name in changes.keys]):
                uncertain.add(name)
        if uncertain:
            return uncertain
        landing = self._landing(of, position, read, cut, tables)
        if not wider:
            return landing
        version = server(of.coordinator).version
        if {f.table for f in self._head(of, self._what.known)._tables(of.coordinator, version, self._oids)} != {
            f.table for f in found
        }:
            raise in_motion()
        silent = set(self._named(wider)) - {t.name for t in landing.tables}
        bare = tuple(PostgresTable(n, tables[n], Spooled(None, 0), former=self._what.known[n]) for n in sorted(silent))
        return replace(landing, tables=(*landing.tables, *bare), keep_position=True)

    def _landing(
        self,
        of: Cluster,
        position: Json,
        read: Mapping[int, NodeChanges],
        cut: Cut[Looked],
        tables: Mapping[TableName, RemoteTable],
    ) -> Landing:
        own = {n: tables.get(n) for n in tables}
        landed = tuple(
            replace(t, table=own[t.name] or t.table, former=self._what.known.get(t.name))
            for group in sorted(read)
            for t in read[group].tables
        )
        rows = sum(changes.rows for changes in read.values())
        placed, added = cut.seen
        now = {
            "cut": self._number + 1,
            "changes": position["changes"] + rows,
            "nodes": {str(group): self._at(of, group, changes, tables) for group, changes in read.items()},
            "placements": placed,
            "added": added,
            NAMES: {str(t.oid): str(t) for t in tables.values()},
        }
        told = tuple(changes.told for changes in read.values() if changes.told is not None)
        transactions = sum(changes.transactions for changes in read.values())
        keep = bool(landed or told) or now["nodes"].keys() != position["nodes"].keys()
        keep = keep or placed != position.get("placements") or self._far(position, now) or not self._recorded(position)
        return Landing(landed, now, keep, transactions, rows, True, notices=told)

    def _at(
        self, of: Cluster, group: int, changes: NodeChanges, tables: Mapping[TableName, RemoteTable]
    ) -> dict[str, Any]:
        node, oids = of.nodes[group], {str(t.oid) for t in tables.values()}
        partitions = {oid: mark for oid, mark in self._partitions.get(group, {}).items() if oid in oids}
        return {**changes.position, "host": node.host, "port": node.port} | ({_MARKS: partitions} if partitions else {})

    def _emptied(self, of: Cluster, position: Json, found: Collection[Found]) -> list[TableName]:
        """Look at the partitions of all workers; return mirrors of which one was emptied there."""
        wanted = [f.table for f in found if f.table.partitioned]
        self._partitions = {}
        if wanted:
            workers = [group for group in of.connections if group != COORDINATOR]
            self._partitions = {group: partitions_on(of.connections[group], wanted) for group in workers}
        emptied: set[int] = set()
        for group, seen in self._partitions.items():
            before = position.get("nodes", {}).get(str(group), {}).get(_MARKS, {})
            emptied |= {int(oid) for oid, mark in seen.items() if before.get(oid, mark) != mark}
        return self._named(emptied)

    def _recorded(self, position: Json) -> bool:
        """Return whether a position has what was last seen of the workers' partitions."""
        at = position.get("nodes", {})
        return all(at.get(str(group), {}).get(_MARKS, {}) == seen for group, seen in self._partitions.items())

    @staticmethod
    def _far(position: Json, now: Json) -> bool:
        return any(
            at["lsn"] - position["nodes"].get(group, at)["lsn"] >= IDLE_BYTES for group, at in now["nodes"].items()
        )

    def _readable(self, of: Cluster) -> dict[int, int]:
        """Return up to where the nodes' logs can be read without harm to their servers.

        Raises:
            UserError: `CAPTURE_REMOVED`.
        """
        until = self._side_by_side(of, lambda group: flush(of.connections[group]))
        _require_readable(of.coordinator)  # a column is dropped there first
        return until

    def _waiting(self, of: Cluster, position: Json, until: Mapping[int, int]) -> bool:
        """Return whether a node has changes of captured tables, or much log without any."""

        def waits(group: int) -> bool:
            at, connection = position["nodes"][str(group)], of.connections[group]
            ahead, name = until[group] - at["lsn"], self._what.slot
            slot = slots.find_slot(connection, name)
            if slot is None or slot.lost:  # reading it says so
                return True
            return ahead >= IDLE_BYTES or (ahead > 0 and slots.anything(connection, name, name, until[group]))

        return any(self._side_by_side(of, waits).values())

    def _read(
        self,
        of: Cluster,
        positions: Mapping[str, Json],
        kept: Mapping[TableName, RemoteTable],
        fresh: Mapping[TableName, RemoteTable],
        since: Mapping[int, int],
        cut: Cut[Looked],
        placed: Mapping[str, str],
        wider: Collection[TableName] = (),
        published: Mapping[int, Mapping[str, str]] | None = None,
    ) -> dict[int, NodeChanges]:
        """Read every node's log up to a cut.

        Args:
            of: The cluster.
            positions: Where each node is landed.
            kept: Tables whose mirrors are brought forward, as the coordinator has them.
            fresh: Tables that are copied anew.
            since: Where their copies begin, by node.
            cut: The cut.
            placed: Where tables are.
            wider: Mirrors whose table has gained columns since.
            published: Marks of the fresh tables in the nodes' publications, from before they were copied.
        """
        plain = [n for n, t in {**kept, **fresh}.items() if placed.get(str(t.oid)) == "local"]

        def node(group: int) -> NodeChanges:
            at, connection = positions[str(group)], of.connections[group]
            here = dict(kept) if group == COORDINATOR else on_node(connection, kept, self._what.as_text)
            new = dict(fresh) if group == COORDINATOR else on_node(connection, fresh, self._what.as_text)
            log = NodeLog(self._of_node(of, group, here, at), self._node_spool(), most=self._most)
            log.follow_from({n: narrower(here[n], self._what.known[n]) for n in wider if n in here})
            marked = (published or {}).get(group, {})
            return log.read(at, cut.marks[group], cut.text, new, since.get(group, 0), plain, marked)

        return self._side_by_side(of, node)

    def _cut(self, of: Cluster, oids: Collection[int]) -> Cut[Looked]:
        def look(coordinator: Any) -> Looked:
            _require_readable(coordinator)
            return marks(placements(coordinator, oids)), nodes_added(coordinator)

        text = f"{self._what.slot}:{self._number + 1}:{uuid.uuid4().hex[:8]}"
        cut = take_cut(of.connections, text, look)
        self.cut_seconds = cut.seconds
        return cut

    # ---- copies

    def _copied(
        self,
        of: Cluster,
        position: Json,
        anew: Mapping[TableName, Found | None],
        joined: Mapping[str, Json],
        *,
        first: bool = False,
    ) -> Landing:
        """Land up to a cut with copies of some tables, and all others.

        What is met in the logs stays there, so that trying again would meet it again: where a table that was to be
        kept turns out to be one that must be copied, it is copied with them.

        Args:
            of: The cluster.
            position: What is landed.
            anew: Mirrors that are taken anew, with their tables; None for those that are gone.
            joined: Nodes that are new, with where their slots begin.
            first: The source begins.
        """
        wanted = {n: f.table for n, f in anew.items() if f is not None}
        kept = {} if first else {n: t for n, t in self._what.known.items() if n not in anew}
        head = self._head(of, self._what.known)
        version = server(of.coordinator).version
        found = head._tables(of.coordinator, version, [t.oid for t in kept.values()])
        present = {f.table.oid: f for f in found}
        kept = {n: present[t.oid].table for n, t in kept.items() if t.oid in present}
        emptied = self._emptied(of, position, [*found, *(f for f in anew.values() if f is not None)])
        then = position.get("placements", {})
        went = moved(then, marks(placements(of.coordinator, [t.oid for t in kept.values()])))
        anew = {**anew, **{n: present[t.oid] for n, t in kept.items() if str(t.oid) in went or n in emptied}}
        wanted |= {n: t for n, t in kept.items() if n in anew}
        kept = {n: t for n, t in kept.items() if n not in wanted}
        PostgresCapture._distinct([t.oid for t in (*kept.values(), *wanted.values())])
        listed = {**kept, **wanted}
        oids = [t.oid for t in listed.values()]
        before = placements(of.coordinator, oids)
        copies = [(f, self._what.parts.get(n, Part())) for n, f in anew.items() if f is not None]
        preflight.require(check_tables(of.coordinator, copies, before))
        published: dict[int, dict[str, str]] = {}
        for group in sorted(of.connections):
            with of.at(group) as connection:
                here = dict(listed) if group == COORDINATOR else on_node(connection, listed, self._what.as_text)
                published[group] = self._publish(of, group, here, first)
        with ExitStack() as open_slots, self._held(head, of, wanted) as shapes:
            since = {group: flush(connection) for group, connection in of.connections.items()}
            snapshots: dict[int, str] = {}
            for group in self._needed(of, shapes, before, first):
                name = self._what.slot if first else f"headrace_tmp_{uuid.uuid4().hex[:12]}"
                slot = slots.exported(
                    of.urls[group], name, temporary=not first, failover=self._what.failover and first, told=self._told
                )
                since[group], snapshots[group] = open_slots.enter_context(slot)
            of_wanted = {oid: before[oid] for oid in (t.oid for t in shapes.values())}
            spooled = copied(of.urls, snapshots, shapes, of_wanted, self._spool, self._told, of.at)
            positions = self._beginnings(of, since, published) if first else {**position["nodes"], **joined}
            cut = self._cut(of, oids)
            placed = cut.seen[0]
            if placed != marks(before):
                raise in_motion()
            read = self._read(of, positions, kept, shapes, since, cut, placed, published=published)
        uncertain = {n for changes in read.values() for n in changes.unsure}
        if not uncertain.isdisjoint(shapes):  # while they were copied
            raise in_motion()
        if uncertain:
            again = {n: present[kept[n].oid] for n in uncertain}
            return self._copied(of, position, {**anew, **again}, joined)
        if moved(then, {str(t.oid): placed[str(t.oid)] for t in kept.values()}):
            raise in_motion()
        whole = tuple(PostgresTable(n, t, spooled[n], True, self._what.known.get(n)) for n, t in shapes.items())
        landing = self._landing(of, position, read, cut, {**kept, **shapes})
        rest = tuple(
            replace(t, former=shapes[t.name]) if isinstance(t, PostgresTable) and t.name in shapes else t
            for t in landing.tables
        )
        rows = landing.rows + sum(of.spooled.rows for of in whole)
        moved_to = {**landing.position, "changes": position["changes"] + rows}
        gone = tuple(n for n, f in anew.items() if f is None)
        return replace(landing, tables=(*whole, *rest), position=moved_to, keep_position=True, rows=rows, gone=gone)

    def _needed(
        self, of: Cluster, wanted: Mapping[TableName, RemoteTable], placed: Mapping[int, Placement], first: bool
    ) -> list[int]:
        """Return the nodes of which a snapshot is needed."""
        if first:
            return sorted(of.connections)
        groups = {s.group for t in wanted.values() for s in placed[t.oid].captured}
        if any(placed[t.oid].kind == "local" for t in wanted.values()):
            groups.add(COORDINATOR)
        return sorted(groups)

    def _take_away(self, of: Cluster) -> None:
        """Drop slot and publication on every node.

        Those of the coordinator go at last: its publication says that others may have some.
        """
        for group in sorted(of.connections, reverse=True):
            slots.drop_slot(of.connections[group], self._what.slot)
            slots.drop_publication(of.connections[group], self._what.slot)

    def _publish(self, of: Cluster, group: int, tables: Mapping[TableName, RemoteTable], anew: bool) -> dict[str, str]:
        """Publish tables on a node; return their marks in its publication."""
        connection = of.connections[group]
        version = server(connection).version
        if anew:
            slots.drop_publication(connection, self._what.slot)
        slots.publish_tables(connection, self._what.slot, tuple(tables.values()), version, anew=anew)
        if not tables and anew:  # a slot is read with a publication, also where no captured table is
            connection.execute(_empty_publication(self._what.slot))
        if group == COORDINATOR and anew:  # the first node: nothing is on any other one before
            statement = sql.SQL("COMMENT ON PUBLICATION {} IS {}")
            connection.execute(statement.format(sql.Identifier(self._what.slot), sql.Literal(OF_ALL_NODES)))
        return slots.published(connection, self._what.slot)

    def _beginnings(
        self, of: Cluster, since: Mapping[int, int], published: Mapping[int, Mapping[str, str]]
    ) -> dict[str, Json]:
        """Return where nodes stand whose slots were made just now.

        Args:
            of: The cluster.
            since: Where the slots begin, by node.
            published: Marks of the tables in the nodes' publications, from before there were slots.
        """
        return {
            str(group): PostgresCapture.placed(server(of.connections[group]), start, 0, published[group])
            | log_witness.NOTHING
            for group, start in since.items()
        }

    def _joined(self, of: Cluster, position: Json, found: Collection[Found]) -> dict[str, Json]:
        """Make slots on nodes that are new; return where these begin.

        Args:
            of: The cluster.
            position: What is landed.
            found: The tables as they are, which may not be as they were landed.
        """
        present = {f.table.oid: f.table for f in found}
        wanted = {n: present[t.oid] for n, t in self._what.known.items() if t.oid in present}
        since: dict[int, int] = {}
        published: dict[int, dict[str, str]] = {}
        for group, connection in of.connections.items():
            if str(group) in position["nodes"]:
                continue
            slots.drop_slot(connection, self._what.slot)
            published[group] = self._publish(of, group, on_node(connection, wanted, self._what.as_text), True)
            slot = slots.exported(
                of.urls[group], self._what.slot, temporary=False, failover=self._what.failover, told=self._told
            )
            with slot as (start, _):
                since[group] = start
        return self._beginnings(of, since, published)

    @staticmethod
    def _same_nodes(of: Cluster, position: Json) -> bool:
        return {str(group) for group in of.connections} == set(position["nodes"])

    @contextmanager
    def _held(
        self, head: CoordinatorLog, of: Cluster, wanted: Mapping[TableName, RemoteTable]
    ) -> Iterator[Mapping[TableName, RemoteTable]]:
        """Keep tables from being altered or truncated; yield their shapes."""
        with head._locked(of.coordinator, wanted) as shapes:
            yield shapes

    # ---- surroundings

    @property
    def _known(self) -> dict[int, RemoteTable]:
        return {t.oid: t for t in self._what.known.values()}

    @property
    def _oids(self) -> list[int]:
        return list(self._known)

    @property
    def _number(self) -> int:
        return int((self._what.position or {}).get("cut", 0))

    @property
    def _counted(self) -> int:
        return int((self._what.position or {}).get("changes", 0))

    def _named(self, oids: Collection[int]) -> list[TableName]:
        return [name for name, table in self._what.known.items() if table.oid in oids]

    def _found(self, mirror: TableName, found: Collection[Found]) -> Found | None:
        oid = self._what.known[mirror].oid
        return next((f for f in found if f.table.oid == oid), None)

    def _head(self, of: Cluster, known: Mapping[TableName, RemoteTable] | None = None) -> CoordinatorLog:
        """Return what looks at tables on the coordinator."""
        mine = replace(self._what, url=of.urls[COORDINATOR], known=self._what.known if known is None else known)
        position = self._what.position
        if by_cuts(position) and position is not None:
            at = position["nodes"].get(str(COORDINATOR), {})
            mine = replace(mine, position={**at, "changes": position["changes"]})
        head = CoordinatorLog(mine, self._spool, most=self._most, told=self._told)

        def checks(_: Any, names: Any, known: Any, parts: Any) -> Any:
            return check_cluster(of, names, self._what.as_text, known, parts, self._what.failover)

        head.checks = checks
        return head

    def _of_node(self, of: Cluster, group: int, known: Mapping[TableName, RemoteTable], position: Json) -> Captured:
        return replace(self._what, url=of.urls[group], known=dict(known), position=position, gone=frozenset())

    def _node_spool(self) -> Spool:
        spool = self._spool.another()
        self._spools.append(spool)
        return spool

    @staticmethod
    def _side_by_side(of: Cluster, work: Callable[[int], Result]) -> dict[int, Result]:
        """Do something for every node, in threads."""

        def named(group: int) -> Result:
            with of.at(group):
                return work(group)

        return side_by_side(named, sorted(of.connections), len(of.connections))

    def _require_capture(self, of: Cluster) -> None:
        """Refuse to go on where a node does not report changes as those of tables.

        Raises:
            UserError: `CAPTURE_REMOVED`.
        """
        for group, connection in of.connections.items():
            off = [c for c in check_node(connection, group) if not c.ok and c.name in ("change data capture", "node")]
            if off:
                raise stop_reasons.removed(f"Node {of.nodes[group]} of the Citus cluster {off[0].finding}.")


def _require_readable(coordinator: Connection) -> None:
    """Refuse to read logs that may have changes of tables with dropped columns.

    Making such a table anew is not enough, as the logs still have what was done to it before: new slots skip that.

    Raises:
        UserError: `CAPTURE_REMOVED`.
    """
    if not (found := with_dropped_columns(coordinator)):
        return
    table, again = next(iter(found.items()))
    raise stop_reasons.removed(
        f"Table {table} of the Citus cluster had a column dropped, and Citus' decoder damages the server's memory when "
        f"it reads a change of such a table: nothing is read. Make it anew first: {again}"
    )


def _empty_publication(name: str) -> sql.Composed:
    return sql.SQL("CREATE PUBLICATION {} WITH (publish_via_partition_root = true)").format(sql.Identifier(name))
