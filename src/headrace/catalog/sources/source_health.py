"""Health of database sources, and what is on their servers; in the caller's transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.errors import HeadraceError

_FAILURE, _LOOKS, _NODES, _CAPTURES = "failure", "looks", "nodes", "captures"


@dataclass(frozen=True, slots=True)
class SourceFailure:
    """The last failure of landing a source.

    Args:
        code: Error code.
        message: What happened.
        detail: Why, where that is known.
        remedy: What to do about it.
        retryable: Whether it may pass by itself.
        since: When it first happened; it has happened at every landing since.
        at: When it last happened.
        over: When a landing succeeded after it; None while none has.
    """

    code: str
    message: str
    detail: str | None
    remedy: str | None
    retryable: bool
    since: dt.datetime
    at: dt.datetime
    over: dt.datetime | None = None


def failure_of(health: Mapping[str, Any] | None) -> SourceFailure | None:
    """Return the last failure, as a row of the catalog has it."""
    found = (health or {}).get(_FAILURE)
    if found is None:
        return None
    times = {name: _moment(found[name]) for name in ("since", "at", "over")}
    return SourceFailure(**{**found, **times})


def note_failure(connection: Connection, name: str, error: HeadraceError, now: dt.datetime) -> None:
    """Record a failure; a continuing one keeps its begin.

    Nothing happens when there is no such source.
    """

    _change(connection, name, lambda health: {**health, _FAILURE: _noted(failure_of(health), error, now)})


def _noted(before: SourceFailure | None, error: HeadraceError, now: dt.datetime) -> dict[str, Any]:
    """Return a failure as a row of the catalog has it."""
    goes_on = before is not None and before.over is None and before.code == error.code
    return {
        "code": error.code,
        "message": error.message,
        "detail": error.detail,
        "remedy": error.hint,
        "retryable": error.retryable,
        "since": (before.since if before is not None and goes_on else now).isoformat(),
        "at": now.isoformat(),
        "over": None,
    }


def node_failures_of(health: Mapping[str, Any] | None) -> dict[str, SourceFailure]:
    """Return the last failure of each node of a source of several, by node."""
    found = ((node, failure_of({_FAILURE: of})) for node, of in (health or {}).get(_NODES, {}).items())
    return {node: failure for node, failure in found if failure is not None}


def note_node_failures(
    connection: Connection, name: str, held: Mapping[str, HeadraceError], over: Sequence[str], now: dt.datetime
) -> None:
    """Record which nodes of a source were held back, and which are landed again.

    Args:
        connection: In the caller's transaction.
        name: The source.
        held: Why nodes were held back.
        over: Nodes that are landed again.
        now: The time.
    """

    def noted(health: dict[str, Any]) -> dict[str, Any]:
        nodes, before = dict(health.get(_NODES, {})), node_failures_of(health)
        nodes |= {node: {**nodes[node], "over": now.isoformat()} for node in over if node in nodes}
        nodes |= {node: _noted(before.get(node), error, now) for node, error in held.items()}
        return {**health, _NODES: nodes}

    _change(connection, name, noted)


def end_failure(connection: Connection, name: str, now: dt.datetime) -> None:
    """Remember that the last failure is over."""

    def noted(health: dict[str, Any]) -> dict[str, Any]:
        failure = health.get(_FAILURE)
        return health if failure is None else {**health, _FAILURE: {**failure, "over": now.isoformat()}}

    _change(connection, name, noted)


def looks_of(health: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    """Return looks at the source's server, oldest first, as whoever looked wrote them down."""
    return tuple((health or {}).get(_LOOKS, ()))


def note_looks(connection: Connection, name: str, looks: Sequence[Mapping[str, Any]]) -> None:
    """Replace the recorded looks at a source's server, if the source exists."""
    _change(connection, name, lambda health: {**health, _LOOKS: [dict(look) for look in looks]})


def captures_of(health: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Return what is to be installed on servers, or to be removed, by its name there."""
    return dict((health or {}).get(_CAPTURES, {}))


def note_captures(
    connection: Connection, name: str, noted: Mapping[str, Mapping[str, Any]], over: Collection[str]
) -> None:
    """Record what is to be installed, and forget what is in use or removed.

    Args:
        connection: In the caller's transaction.
        name: The source.
        noted: What is to be installed or removed, by its name on the server.
        over: Names of what is not to be recorded any more.
    """

    def changed(health: dict[str, Any]) -> dict[str, Any]:
        captures = {slot: of for slot, of in captures_of(health).items() if slot not in over}
        return {**health, _CAPTURES: {**captures, **{slot: dict(of) for slot, of in noted.items()}}}

    _change(connection, name, changed)


def _change(connection: Connection, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    own = sa.select(t.source.c.health_json).where(t.source.c.name == name).with_for_update()
    row = connection.execute(own).one_or_none()
    if row is not None:
        changed = change(dict(row[0] or {}))
        connection.execute(sa.update(t.source).where(t.source.c.name == name).values(health_json=changed))


def _moment(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)
