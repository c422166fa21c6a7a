"""Drops former generations whose promotions can no longer be taken back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from headrace.catalog import Catalog, Green
from headrace.deploy.readiness import refuse_changed
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
        names = tuple(g.name for g in doomed)
        with suppress(HeadraceError):  # LEASE_HELD, or somebody else has dropped them, or taken them back, just now
            creator.drop_together(names, still=partial(_refuse_changed, catalog, doomed))
            dropped += names
    return tuple(dropped)


def _refuse_changed(catalog: Catalog, doomed: Sequence[Green]) -> None:
    refuse_changed(doomed, catalog.greens())
