"""Deployments that schedulers finish; a part of `Catalog`."""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa

from headrace.catalog import schema as t
from headrace.catalog.coordination.notify import wake
from headrace.catalog.database import Database
from headrace.catalog.definitions import deployments, greens
from headrace.catalog.records import Json
from headrace.clock import Clock
from headrace.names import TableName


class DeploymentCatalog:
    """Conditions of promotions, refusals and watches. Every method is one transaction."""

    _database: Database
    _clock: Clock

    def has_unattended(self) -> bool:
        """Return whether a scheduler has any deployment to promote or to watch; one small query."""
        armed = sa.exists(sa.select(t.deployment.c.name))
        watched = sa.exists(sa.select(t.green.c.relation_id).where(t.green.c.watch_json.is_not(None)))
        with self._database.read() as connection:
            return bool(connection.execute(sa.select(sa.or_(armed, watched))).scalar())

    def set_auto_promote(self, name: str, conditions: Json | None) -> None:
        """Have a deployment promote itself, or not.

        Args:
            name: The deployment.
            conditions: On which conditions; None for not.
        """
        with self._database.write() as connection:
            if conditions is None:
                deployments.forget(connection, [name])
            else:
                deployments.put(connection, name, conditions, self._clock.now())
            wake(connection)

    def note_refusal(self, name: str, code: str, reason: str) -> None:
        """Write down why a deployment was not promoted."""
        with self._database.write() as connection:
            deployments.note_refusal(connection, name, code, reason, self._clock.now())

    def note_load(self, name: TableName, progress: Json) -> None:
        """Write down how far the load of a second generation is; nothing for another table."""
        with self._database.write() as connection:
            greens.note_load(connection, name, progress)

    def end_watch(self, name: str, promoted_at: dt.datetime) -> None:
        """Watch what was promoted together no longer."""
        with self._database.write() as connection:
            deployments.end_watch(connection, name, promoted_at)
