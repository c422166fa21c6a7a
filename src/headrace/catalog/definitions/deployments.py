"""Rows of deployments that are to promote themselves, until their promotion."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.records import Json


@dataclass(frozen=True, slots=True)
class AutoDeployment:
    """A deployment that is to be promoted by a scheduler.

    Args:
        name: The deployment.
        conditions: On which conditions, in the deploying room's own form.
        tried_at: When a promotion was refused last; None when none was.
        refused_code: The code of that refusal.
        refused_reason: Its message.
    """

    name: str
    conditions: Json
    tried_at: dt.datetime | None = None
    refused_code: str | None = None
    refused_reason: str | None = None


def read(connection: Connection) -> tuple[AutoDeployment, ...]:
    """Return deployments that are to promote themselves, by name."""
    c = t.deployment.c
    query = sa.select(c.name, c.conditions_json, c.tried_at, c.refused_code, c.refused_reason).order_by(c.name)
    return tuple(AutoDeployment(*row) for row in connection.execute(query))


def put(connection: Connection, name: str, conditions: Json, now: dt.datetime) -> None:
    """Set conditions of a deployment in place of those it had; what was refused is forgotten."""
    forget(connection, [name])
    row = {"name": name, "conditions_json": dict(conditions), "set_at": now}
    connection.execute(sa.insert(t.deployment), [row])


def note_refusal(connection: Connection, name: str, code: str, reason: str, now: dt.datetime) -> None:
    """Write down that a promotion was refused; nothing where the conditions are gone."""
    values = {"tried_at": now, "refused_code": code, "refused_reason": reason}
    connection.execute(sa.update(t.deployment).where(t.deployment.c.name == name).values(values))


def forget(connection: Connection, names: Collection[str]) -> None:
    """Have deployments not promote themselves."""
    connection.execute(sa.delete(t.deployment).where(t.deployment.c.name.in_(names)))


def forget_empty(connection: Connection) -> None:
    """Forget deployments that have no second generations any more."""
    there = sa.select(t.green.c.deployment)
    connection.execute(sa.delete(t.deployment).where(t.deployment.c.name.not_in(there)))


def end_watch(connection: Connection, name: str, promoted_at: dt.datetime) -> None:
    """Watch what was promoted together no longer."""
    together = sa.and_(t.green.c.deployment == name, t.green.c.promoted_at == promoted_at)
    connection.execute(sa.update(t.green).where(together).values(watch_json=sa.null()))
