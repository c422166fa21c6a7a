"""Intents: publications that are being shown elsewhere, from decision to confirmation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.coordination import leases as leasing
from headrace.catalog.publishing.publication import Publication
from headrace.catalog.remote_lake.plain_records import UnknownFieldError, from_plain, to_plain
from headrace.lakes.lake_server import Key, LakeMove

_PATIENCE = dt.timedelta(minutes=1)
"""Time for which a publisher without a lease is taken to be still publishing."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A publication that is decided, of which it is not known here whether the lake shows it.

    Args:
        publication: What is published.
        moves: What becomes of the lake's tables.
        created_at: When it was decided.
    """

    publication: Publication
    moves: tuple[LakeMove, ...]
    created_at: dt.datetime


def add(connection: Connection, publication: Publication, moves: Sequence[LakeMove], now: dt.datetime) -> None:
    """Write an intent down; the same one once."""
    if connection.execute(sa.select(t.lake_intent.c.uuid).where(t.lake_intent.c.uuid == publication.uuid)).first():
        return
    values = {
        "uuid": publication.uuid,
        "created_at": now,
        "publication_json": to_plain(publication),
        "moves_json": [[*move.key, move.before, move.after] for move in moves],
    }
    connection.execute(sa.insert(t.lake_intent).values(values))


def remove(connection: Connection, uuid: str) -> None:
    """Forget an intent: it is confirmed, or put back."""
    connection.execute(sa.delete(t.lake_intent).where(t.lake_intent.c.uuid == uuid))


def read(connection: Connection, uuid: str | None = None) -> list[Intent]:
    """Return the intents, oldest first, or the one of a publication.

    Those of another version of Headrace, which tells more of a publication than this one knows, are left to it: their
    tables stay busy.
    """
    query = sa.select(t.lake_intent).order_by(t.lake_intent.c.created_at)
    if uuid is not None:
        query = query.where(t.lake_intent.c.uuid == uuid)
    found = []
    for row in connection.execute(query).mappings():
        with suppress(UnknownFieldError):
            publication = from_plain(Publication, row["publication_json"])
            found.append(Intent(publication, _moves(row["moves_json"]), row["created_at"]))
    return found


def keys(connection: Connection) -> set[Key]:
    """Return the tables that intents are about."""
    rows = connection.execute(sa.select(t.lake_intent.c.moves_json)).scalars()
    return {move.key for row in rows for move in _moves(row)}


def abandoned(connection: Connection, lease_time: Callable[[Connection], dt.datetime]) -> list[Intent]:
    """Return the intents whose publishers have lost their leases, or have been silent for long."""
    if not (found := read(connection)):
        return []
    now = lease_time(connection)
    leases = map(leasing.lease_of, connection.execute(sa.select(t.lease).where(t.lease.c.owner.is_not(None))))
    live = {(lease.resource, lease.token) for lease in leases if leasing.is_live(lease, now)}
    return [intent for intent in found if not _is_at_it(intent, live, now)]


def _is_at_it(intent: Intent, live: set[tuple[str, int]], now: dt.datetime) -> bool:
    if leases := intent.publication.leases:
        return all((lease.resource, lease.token) in live for lease in leases)
    return now - intent.created_at < _PATIENCE


def _moves(rows: list[list[str | None]]) -> tuple[LakeMove, ...]:
    return tuple(LakeMove((str(namespace), str(table)), before, after) for namespace, table, before, after in rows)
