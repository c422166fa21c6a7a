"""Takes cuts over all nodes of a cluster: moments that no distributed transaction straddles.

A distributed transaction is decided by a row in `pg_dist_transaction` of the node that began it. That node writes it
before it commits, and keeps its lock on the table until all other nodes have committed their prepared parts. Whoever
locks that table on every node (the coordinator first, so that two cuts cannot wait for each other, then all others at
once) finds every such transaction either committed everywhere or nowhere. While the locks are held a mark is written to
the log of each node; what was committed before its mark belongs to the cut. Nothing is written to tables: the
transaction is rolled back.

There is one exception. When a node could not be reached, its part stays prepared although the transaction is decided,
until Citus' recovery commits it. Such a cut is void, and is taken again.

Source: `citus_create_restore_point` of Citus takes the same lock for restore points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import psycopg

from headrace.errors import EnvironmentFault
from headrace.sources.interruption import side_by_side
from headrace.sources.postgres.connection import Connection, breakable, busy

Seen = TypeVar("Seen")
Result = TypeVar("Result")

PREFIX = "headrace"
"""Of the messages that are marks."""

LOCK_TIMEOUT = "1s"
"""Time that each node is waited for; all that time writers of several nodes wait, too."""

FORGOTTEN = "5s"
"""After so long without a word a node ends our transaction: a process that hangs must not hold up its writers."""

ATTEMPTS, PAUSE = 5, 0.5
"""Attempts before a cut is given up, and seconds between them."""

_LOCK = f"""
BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; SET LOCAL idle_in_transaction_session_timeout = '{FORGOTTEN}';
LOCK TABLE pg_catalog.pg_dist_transaction IN EXCLUSIVE MODE
"""

_MARK = """
SELECT pg_logical_emit_message(false, %s, %s) - '0/0', (SELECT json_agg(gid) FROM pg_prepared_xacts
    WHERE database = current_database() AND gid LIKE 'citus\\_%%')
"""

_DECIDED = "SELECT gid FROM pg_catalog.pg_dist_transaction WHERE groupid = ANY(%s) AND gid = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Cut(Generic[Seen]):
    """A cut over all nodes.

    Args:
        marks: The position of each node's mark, by group; what was committed before it belongs to the cut.
        text: What the marks say.
        seen: What was looked up on the coordinator at the cut.
        seconds: How long the locks were held.
    """

    marks: Mapping[int, int]
    text: str
    seen: Seen
    seconds: float


def take_cut(
    connections: Mapping[int, Connection],
    text: str,
    look: Callable[[Connection], Seen],
    *,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
) -> Cut[Seen]:
    """Mark one moment on every node.

    Args:
        connections: To every node by group, in no transaction; the least group is the coordinator's.
        text: What the marks say; no two cuts say the same.
        look: Looks something up on the coordinator at the cut; must be quick.
        attempts: How often it is tried.
        pause: Seconds between two attempts.

    Raises:
        EnvironmentFault: `SOURCE_BUSY` when a lock was not to be had, or a transaction is decided and not committed
            everywhere.
    """
    failure: psycopg.Error | None = None
    undecided = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause)
        try:
            cut, undecided = _attempt(connections, text, look)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            failure, undecided = error, ""
            continue
        if not undecided:
            return cut
    if undecided or failure is None:
        raise EnvironmentFault(
            "SOURCE_BUSY",
            f"A distributed transaction is committed, but not on every node yet: {undecided}. Nothing was landed.",
            hint="Citus commits it there by itself as soon as the node can be reached "
            "(citus.recover_2pc_interval); SELECT recover_prepared_transactions(); does it at once.",
            retryable=True,
        )
    raise busy(failure, "they kept pg_dist_transaction locked")


def _attempt(
    connections: Mapping[int, Connection], text: str, look: Callable[[Connection], Seen]
) -> tuple[Cut[Seen], str]:
    """Take a cut; return it with the transactions that make it void."""
    coordinator, *others = sorted(connections)
    begin = time.perf_counter()

    def everywhere(statement: str, groups: Collection[int]) -> None:
        _all(connections, groups, lambda group: connections[group].execute(statement))

    def mark(group: int) -> tuple[int, list[str], Seen | None]:
        row: tuple[Any, ...] | None = connections[group].execute(_MARK, (PREFIX, text)).fetchone()
        assert row is not None, "a query without FROM has one row"
        seen = look(connections[group]) if group == coordinator else None
        return int(row[0]), [str(gid) for gid in row[1] or ()], seen

    try:
        connections[coordinator].execute(_LOCK)
        everywhere(_LOCK, others)
        marked = _all(connections, [coordinator, *others], mark)
        undecided = _decided(connections, {group: prepared for group, (_, prepared, _) in marked.items()})
        # one whose transaction the server has ended meanwhile has lost its lock, and fails here
        everywhere("ROLLBACK", [coordinator, *others])
    except BaseException:
        for group in connections:
            with suppress(psycopg.Error):
                connections[group].execute("ROLLBACK")
        raise
    marks = {group: place for group, (place, _, _) in marked.items()}
    seen = cast("Seen", marked[coordinator][2])
    return Cut(marks, text, seen, time.perf_counter() - begin), undecided


def _all(
    connections: Mapping[int, Connection], groups: Collection[int], work: Callable[[int], Result]
) -> dict[int, Result]:
    """Do something for several nodes at once; raises the first failure when all have ended."""

    def one(group: int) -> Result | psycopg.Error:
        try:
            with breakable(connections[group]):
                return work(group)
        except psycopg.Error as error:  # the others go on: their connections are used again
            return error

    found = side_by_side(one, groups, max(1, len(groups)))
    for result in found.values():
        if isinstance(result, psycopg.Error):
            raise result
    return cast("dict[int, Result]", found)


def _decided(connections: Mapping[int, Connection], prepared: Mapping[int, Collection[str]]) -> str:
    """Return, in words, prepared parts of transactions that are committed where they began."""
    begun: dict[int, list[str]] = {}
    for gids in prepared.values():
        for gid in gids:
            if (group := initiator(gid)) in connections:
                begun.setdefault(group, []).append(gid)
    found = []
    for group, gids in begun.items():
        rows = connections[group].execute(_DECIDED, (sorted(prepared), gids)).fetchall()
        found += [str(row[0]) for row in rows]
    return ", ".join(sorted(found))


def initiator(gid: str) -> int:
    """Return the group of the node that began a transaction; -1 if it is none of Citus'."""
    parts = gid.split("_")
    return int(parts[1]) if len(parts) > 2 and parts[0] == "citus" and parts[1].isdigit() else -1
