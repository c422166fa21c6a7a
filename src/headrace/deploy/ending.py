"""Ends membership in a deployment: drops second generations, and leaves what is public."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog import Catalog, Green
from headrace.deploy.readiness import refuse_changed
from headrace.names import TableName
from headrace.refresh.definition.create import Creator


def end(
    members: Sequence[Green], catalog: Catalog, creator: Creator, *, patience: float = 0.0
) -> tuple[TableName, ...]:
    """Drop members that are not public, and forget that the others were members.

    Args:
        members: The members, producers first.
        catalog: The catalog.
        creator: Drops them.
        patience: Seconds to wait for whoever refreshes a table whose change log only they read.

    Returns:
        What was dropped, in the same order.

    Raises:
        UserError: `ALREADY_PROMOTED`.
        EnvironmentFault: `LEASE_HELD` while one of them is refreshed, `DEPLOYMENT_CHANGED`; retryable.
    """
    doomed = tuple(green.name for green in members if not green.public)
    ended = tuple(green.name for green in members if green.public)
    creator.drop_together(
        doomed, ended=ended, still=lambda: refuse_changed(members, catalog.greens()), patience=patience
    )
    return doomed
