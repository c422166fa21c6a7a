"""Plans maintenance of Headrace's tables, as statements in `staging` to be published.

Expiring deletes files at once, before anything is published; it only ever names snapshots nobody may still read. Where
publishing did not come to pass, the next time drops them from the metadata although their files are gone.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from headrace.errors import EnvironmentFault
from headrace.lake.metadata import Snapshot, TableMeta, local_path
from headrace.lake.tables import VERSION, set_complete_after, string_literal
from headrace.names import STAGING, SYSTEM_NAMESPACE, TableName, quote


class Chore(StrEnum):
    """A kind of maintenance."""

    COMPACT = "COMPACT"
    EXPIRE = "EXPIRE"
    TRIM_LOG = "TRIM_LOG"
    REMOVE_ORPHANS = "REMOVE_ORPHANS"


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of maintenance.

    Args:
        chore: Its kind.
        table: The table, in `staging`.
        sql: The statement.
        commits: Whether it makes a new metadata file, which must be published.
        snapshots: Those that it drops.
    """

    chore: Chore
    table: TableName
    sql: str
    commits: bool = True
    snapshots: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds at which maintenance is due.

    Args:
        keep: How long a snapshot stays readable after it was replaced, for readers and `hr.at()`.
        orphan_age: Files nobody refers to are removed when older than this; Iceberg refuses less than a day.
        small_files: Compact a table with more data files than this that are small on average.
        small_file_bytes: What small is.
        deleted_share: Compact a table of whose stored rows more than this share is deleted.
    """

    keep: dt.timedelta
    orphan_age: dt.timedelta
    small_files: int = 20
    small_file_bytes: int = 32 * 1024 * 1024
    deleted_share: float = 0.2


class Runner(Protocol):
    """Operations of Spark that maintenance needs."""

    def run(self, sql: str) -> list[Any]:
        """Run one statement."""
        ...

    def forget(self, table: TableName, snapshots: Collection[int], *, files: bool = False) -> bool:
        """Drop snapshots, and files only they use if asked; False if the session cannot."""
        ...

    def purge(self, metadata_location: str, table: TableName) -> bool:
        """Delete all files of a table that no catalog has; False if the session cannot."""
        ...


def plan_maintenance(
    table: TableName, meta: TableMeta, *, needed: Set[int], now: dt.datetime, policy: Policy
) -> tuple[Task, ...]:
    """Return the tasks due for a table; compaction first, as it frees older files.

    Args:
        table: The table, in `staging`.
        meta: Its metadata.
        needed: Snapshots that must stay: those of frontiers, and the published one.
        now: The time.
        policy: When what is due.
    """
    tasks = []
    if meta.current is not None and _scattered(meta.current, policy):
        tasks.append(compact(table))
    if expired := expendable(meta, needed, now - policy.keep):
        tasks.append(expire(table, expired))
    return tuple(tasks)


def _scattered(snapshot: Snapshot, policy: Policy) -> bool:
    files, stored = snapshot.count("total-data-files"), snapshot.count("total-records")
    small = files > policy.small_files and snapshot.count("total-files-size") < files * policy.small_file_bytes
    return small or snapshot.count("total-position-deletes") > policy.deleted_share * max(1, stored)


def expendable(meta: TableMeta, needed: Set[int], before: dt.datetime) -> tuple[int, ...]:
    """Return snapshots that can be expired, oldest first.

    They were replaced before a time and are not current, needed or tagged.

    A snapshot is replaced when its successor is committed, so the one that was current at `before` stays.
    """
    limit = before.timestamp() * 1000
    replaced = {s.parent_id: s.timestamp_ms for s in meta.snapshots.values() if s.parent_id is not None}
    kept = {*needed, *meta.refs.values(), meta.current_snapshot_id}
    old = (s for s in meta.snapshots.values() if s.id not in kept and replaced.get(s.id, s.timestamp_ms) < limit)
    return tuple(s.id for s in sorted(old, key=lambda s: s.sequence_number))


def expire(table: TableName, snapshots: Collection[int]) -> Task:
    """Drop exactly these snapshots, and the files only they use."""
    listed = ", ".join(f"{s}L" for s in snapshots)
    # Without a date Iceberg adds its own default: everything older than five days.
    arguments = f"older_than => TIMESTAMP'1970-01-01 00:00:00', retain_last => 1000000, snapshot_ids => ARRAY({listed})"
    return Task(Chore.EXPIRE, table, _call(table, "expire_snapshots", arguments), snapshots=frozenset(snapshots))


def compact(table: TableName) -> Task:
    """Rewrite small files and files with deleted rows, as a `replace` snapshot."""
    options = "'min-input-files', '2', 'delete-file-threshold', '1', 'remove-dangling-deletes', 'true'"
    return Task(Chore.COMPACT, table, _call(table, "rewrite_data_files", f"options => map({options})"))


def trim_log(log: TableName, through: int) -> tuple[Task, Task]:
    """Drop the change log's entries up to a version; whole files, without rewriting."""
    noted = Task(Chore.TRIM_LOG, log, set_complete_after(log, through))
    return noted, Task(Chore.TRIM_LOG, log, f"DELETE FROM {log.sql} WHERE {quote(VERSION)} <= {through}")


def remove_orphans(table: TableName, now: dt.datetime, policy: Policy, *, location: str | None = None) -> Task:
    """Delete files below the table's folder that no metadata refers to.

    Args:
        table: The table, in `staging`.
        now: The time.
        policy: What is old enough.
        location: The table's folder; None for one on a disk.
    """
    before = (now - policy.orphan_age).astimezone(dt.UTC)
    arguments = f"older_than => TIMESTAMP'{before:%Y-%m-%d %H:%M:%S}Z'"
    if location is not None and local_path(location) is None:
        # an object store is listed as Iceberg reaches it; Spark by itself knows neither its scheme nor its keys
        arguments += ", prefix_listing => true"
    return Task(Chore.REMOVE_ORPHANS, table, _call(table, "remove_orphan_files", arguments), commits=False)


def purge(runner: Runner, metadata_location: str) -> None:
    """Remove all files of a table no catalog has any more.

    Args:
        runner: Removes them.
        metadata_location: Its newest metadata file.

    Raises:
        EnvironmentFault: `FILE_MISSING`.
    """
    table = TableName(STAGING, (SYSTEM_NAMESPACE,), f"purge_{uuid.uuid4().hex}")
    runner.run(f"CREATE NAMESPACE IF NOT EXISTS {quote(STAGING)}.{quote(SYSTEM_NAMESPACE)}")
    if not runner.purge(metadata_location, table):
        runner.run(_call(table, "register_table", f"metadata_file => {string_literal(metadata_location)}"))
        runner.run(f"DROP TABLE {table.sql} PURGE")


def _call(table: TableName, procedure: str, arguments: str) -> str:
    name = ".".join(map(quote, table.parts[1:])).replace("'", "\\'")
    return f"CALL {quote(table.catalog)}.system.{procedure}(table => '{name}', {arguments})"


def run_tasks(tasks: Iterable[Task], runner: Runner, read: Callable[[], TableMeta]) -> bool:
    """Run tasks in order; whether any of them committed something that must be published.

    Iceberg drops snapshots before it looks for their files. Those it does not find were deleted when this was not
    published; others that only they used are removed as orphans.

    Args:
        tasks: What is due.
        runner: Runs the statements.
        read: Reads the table's current metadata through its `staging` pointer.
    """
    committed = False
    for task in tasks:
        try:
            if not (task.snapshots and runner.forget(task.table, task.snapshots, files=True)):
                runner.run(task.sql)
        except EnvironmentFault as error:
            if error.code != "FILE_MISSING" or not task.snapshots or task.snapshots & read().snapshots.keys():
                raise
        committed = committed or task.commits
    return committed
