"""Leases with fencing tokens.

A lease's row stays when it is released, so that the token of a resource grows for ever: a holder that slept through
its lease can never be mistaken for the present one. Rows are always touched in the order of their resources, so two
acquirers of overlapping sets wait for each other instead of deadlocking.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from headrace.catalog import schema as t
from headrace.catalog.records import Lease
from headrace.errors import EnvironmentFault

_INSERT = t.insert_or_skip(t.lease, "resource", "token", "expires_at", "heartbeat_at")


def acquire(
    connection: Connection,
    resources: Sequence[str],
    owner: str,
    ttl: dt.timedelta,
    now: dt.datetime,
    is_dead: Callable[[str], bool] | None = None,
) -> tuple[Lease, ...]:
    """Lease all the resources, or none; see `Catalog.acquire`."""
    current = lock(connection, resources, now)
    for lease in current:
        if is_live(lease, now) and not (is_dead is not None and lease.owner is not None and is_dead(lease.owner)):
            raise _held(lease)
    taken = [Lease(found.resource, owner, found.token + 1, now + ttl, now) for found in current]
    _write(connection, taken)
    return tuple(taken)


def heartbeat(
    connection: Connection, leases: Sequence[Lease], ttl: dt.timedelta, now: dt.datetime
) -> tuple[Lease, ...]:
    """Prolong leases, all or none; see `Catalog.heartbeat`."""
    check(connection, leases)
    prolonged = [Lease(x.resource, x.owner, x.token, now + ttl, now) for x in leases]
    _write(connection, prolonged)
    return tuple(prolonged)


def release(connection: Connection, leases: Sequence[Lease], now: dt.datetime) -> None:
    """Give leases back; those taken over by others are left alone."""
    current = {x.resource: x for x in _lock(connection, [x.resource for x in leases])}
    ours = [x for x in leases if _is_valid(x, current.get(x.resource))]
    _write(connection, [Lease(x.resource, None, x.token, now, now) for x in ours])


def check(connection: Connection, leases: Sequence[Lease]) -> None:
    """Lock the rows of leases until the transaction ends, and check that they are valid.

    An expired lease that nobody took over is still good: the token decides, not the clock.

    Raises:
        EnvironmentFault: `LEASE_LOST`.
    """
    current = {x.resource: x for x in _lock(connection, [x.resource for x in leases])}
    for lease in leases:
        if not _is_valid(lease, found := current.get(lease.resource)):
            raise _lost(lease, found)


def lock(connection: Connection, resources: Iterable[str], now: dt.datetime) -> list[Lease]:
    """Keep others from acquiring resources until the transaction ends; return all leases."""
    wanted = sorted(set(resources))
    _create_rows(connection, wanted, now)
    return _lock(connection, wanted)


def is_live(lease: Lease, now: dt.datetime) -> bool:
    """Return whether a lease is held and has not expired."""
    return lease.owner is not None and lease.expires_at > now


def lease_of(row: Row[Any]) -> Lease:
    """Return an `hr_lease` row as a record."""
    return Lease(row.resource, row.owner, row.token, row.expires_at, row.heartbeat_at)


def _is_valid(lease: Lease, found: Lease | None) -> bool:
    return found is not None and found.token == lease.token and found.owner == lease.owner and found.owner is not None


def _create_rows(connection: Connection, resources: Sequence[str], now: dt.datetime) -> None:
    rows = [{"resource": r, "token": 0, "expires_at": now, "heartbeat_at": now} for r in resources]
    if rows:
        connection.execute(_INSERT, rows)


def _lock(connection: Connection, resources: Sequence[str]) -> list[Lease]:
    if not resources:
        return []
    query = sa.select(t.lease).where(t.lease.c.resource.in_(sorted(set(resources))))
    return [lease_of(r) for r in connection.execute(query.order_by(t.lease.c.resource).with_for_update())]


def _write(connection: Connection, leases: Sequence[Lease]) -> None:
    if not leases:
        return
    change = (
        sa.update(t.lease)
        .where(t.lease.c.resource == sa.bindparam("of"))
        .values({c: sa.bindparam(f"new_{c}") for c in ("owner", "token", "expires_at", "heartbeat_at")})
    )
    rows = [
        {
            "of": x.resource,
            "new_owner": x.owner,
            "new_token": x.token,
            "new_expires_at": x.expires_at,
            "new_heartbeat_at": x.heartbeat_at,
        }
        for x in leases
    ]
    connection.execute(change, rows)


def _held(lease: Lease) -> EnvironmentFault:
    return EnvironmentFault(
        "LEASE_HELD",
        f"{lease.resource} is being worked on by {lease.owner}.",
        detail=f"Its lease lasts until {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC unless it is prolonged.",
        hint="Wait until it is done; a holder that died loses its lease at that time.",
        retryable=True,
    )


def _lost(lease: Lease, found: Lease | None) -> EnvironmentFault:
    now = "nobody" if found is None or found.owner is None else found.owner
    return EnvironmentFault(
        "LEASE_LOST",
        f"The lease on {lease.resource} was lost; it is held by {now} now.",
        detail=f"This process held token {lease.token}; the newest is {0 if found is None else found.token}.",
        hint="Nothing was published. Refresh again; if it happens often, this process stalls too long.",
        retryable=True,
    )
