"""One time for all hosts, by which leases and schedulers expire, and failed tables wait.

By its own clock, a host that is minutes ahead would take every other host's live leases for expired, and take over work
that is under way; nothing wrong would be published, and nothing at all by the others. It would try failed tables again
at once, and again whenever others had. So with PostgreSQL the server's clock is asked, within the transaction that is
under way anyway.
"""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.clock import Clock, SystemClock


class LeaseTime:
    """Tells that time.

    Args:
        clock: The catalog's; one that is not the machine's is believed, as tests want it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self, connection: Connection) -> dt.datetime:
        """Return the time.

        Args:
            connection: To the catalog, within a transaction.
        """
        if self._is_own(connection):
            return self._clock.now()
        found: dt.datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
        return found.astimezone(dt.UTC)

    def ahead(self, connection: Connection) -> dt.timedelta:
        """Return by how much this host's clock is ahead.

        Args:
            connection: As for `now`.
        """
        return dt.timedelta() if self._is_own(connection) else self._clock.now() - self.now(connection)

    def _is_own(self, connection: Connection) -> bool:
        """Return whether it is the time of this host's clock."""
        return connection.dialect.name != "postgresql" or not isinstance(self._clock, SystemClock)
