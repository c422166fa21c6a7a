"""Copies tables of a cluster, shard by shard, in snapshots that the nodes' slots begin with.

Nodes copy side by side, each the shards that it has, in a snapshot of its own moment. That is no state of the cluster;
it becomes one when what each node committed from there up to one cut is applied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass

from psycopg import sql

from headrace.names import TableName
from headrace.sources.postgres.citus.cluster_catalog import COORDINATOR, Placement
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.snapshot.snapshots import Told, finish, reader, reading
from headrace.sources.postgres.spool.landing_sql import Spooled
from headrace.sources.postgres.spool.spool import Spool, csv_batches


@dataclass(frozen=True, slots=True)
class ShardCopy:
    """One COPY.

    Args:
        name: The mirror.
        table: The table.
        group: The node.
        relation: What is read there, quoted.
        number: The number of the file.
    """

    name: TableName
    table: RemoteTable
    group: int
    relation: str
    number: int

    @property
    def query(self) -> sql.Composed:
        """Return the COPY."""
        columns = sql.SQL(", ").join(sql.Identifier(c.name) for c in self.table.columns)
        return sql.SQL("COPY (SELECT {} FROM {}{}) TO STDOUT (FORMAT csv)").format(
            columns,
            sql.SQL("" if self.table.partitioned else "ONLY "),
            sql.SQL(self.relation),
        )


def shard_copies(tables: Mapping[TableName, RemoteTable], placed: Mapping[int, Placement]) -> tuple[ShardCopy, ...]:
    """List what is read to have all rows of tables once.

    Args:
        tables: Tables by mirror, as the coordinator has them.
        placed: Where they are, by oid.
    """
    found: list[ShardCopy] = []
    for name, table in tables.items():
        placement = placed[table.oid]
        if placement.kind == "local":
            relation = sql.Identifier(table.schema, table.name).as_string(None)
            found.append(ShardCopy(name, table, COORDINATOR, relation, len(found)))
        for shard in placement.captured:
            found.append(ShardCopy(name, table, shard.group, shard.relation, len(found)))
    return tuple(found)


def copied(
    urls: Mapping[int, str],
    snapshots: Mapping[int, str],
    tables: Mapping[TableName, RemoteTable],
    placed: Mapping[int, Placement],
    spool: Spool,
    told: Told,
    at: Callable[[int], AbstractContextManager[object]],
) -> dict[TableName, Spooled]:
    """Write the rows of tables to files.

    Args:
        urls: Connection strings by node.
        snapshots: Exported snapshots by node; they must stay open meanwhile.
        tables: Tables by mirror, as the coordinator has them.
        placed: Where they are, by oid.
        spool: Where files are written.
        told: Told after each shard.
        at: Makes errors say which node they are about.
    """
    work = shard_copies(tables, placed)
    folders = {name: spool.part(table) for name, table in tables.items()}
    rows: dict[int, int] = {}
    lock, failed = threading.Lock(), threading.Event()
    total = sum(s.size for p in placed.values() for s in p.captured)

    def node(group: int, mine: Sequence[ShardCopy]) -> None:
        try:
            with at(group), reading(urls[group], snapshots[group]) as connection:
                for part in mine:
                    if failed.is_set():
                        return
                    with connection.cursor() as cursor, cursor.copy(part.query) as copy:
                        batches: Iterator[object] = csv_batches(part.table, reader(copy, failed, spool.ended))
                        count = spool.fill(folders[part.name], part.number, batches)
                    with lock:
                        rows[part.number] = count
                        told(_progress(len(rows), len(work), sum(rows.values()), total))
        except BaseException:
            failed.set()
            raise

    groups = sorted({part.group for part in work})
    with ThreadPoolExecutor(max(1, len(groups)), thread_name_prefix="headrace-shards") as pool:
        jobs = [pool.submit(copy_context().run, node, g, [p for p in work if p.group == g]) for g in groups]
        finish(jobs, failed)
    counted = {name: sum(rows[p.number] for p in work if p.name == name) for name in tables}
    return {n: Spooled(spool.folder_of(folders[n]) if counted[n] else None, counted[n]) for n in tables}


def _progress(done: int, parts: int, rows: int, total: int) -> str:
    return f"copy: {rows:,} rows, {done} of {parts} shards" + (f", {total >> 20:,} MiB in all" if total >> 20 else "")
