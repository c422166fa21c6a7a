"""Drops former generations whose promotions can no longer be taken back."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

from headrace.catalog import Catalog
from headrace.deploy.ending import end
from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.refresh.definition.create import Creator


def drop_expired(catalog: Catalog, creator: Creator, now: dt.datetime) -> tuple[TableName, ...]:
    """Drop former generations that are kept no longer.

    What is being refreshed is left to the next time.

    Args:
        catalog: The catalog.
        creator: Drops them.
        now: The time.

    Returns:
        What was dropped.
    """
    dropped: list[TableName] = []
    expired = [g for g in catalog.greens() if g.keep_until is not None and g.keep_until < now]
    for deployment in dict.fromkeys(g.deployment for g in expired):
        doomed = [g for g in expired if g.deployment == deployment]
        with suppress(HeadraceError):  # LEASE_HELD, or somebody else has dropped them, or taken them back, just now
            dropped += end(doomed, catalog, creator)
    return tuple(dropped)
