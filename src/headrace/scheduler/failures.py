"""Records failed refreshes in the catalog and plans a retry or suspends the table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from headrace.catalog import Catalog
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Events, RetryPlanned, Suspended
from headrace.names import TableName
from headrace.scheduler.policy.backoff import retry_policy


def note_failure(
    catalog: Catalog, events: Events, members: Sequence[TableName], error: HeadraceError, now: dt.datetime, limit: int
) -> HeadraceError | None:
    """Count a failure of stream tables that were refreshed together.

    Args:
        catalog: Where it is kept.
        events: Told of the retry or the suspension.
        members: The stream tables.
        error: What went wrong.
        now: The time.
        limit: After so many failures in a row a stream table is suspended.

    Returns:
        What kept it from being noted; None where it is.
    """
    policy = retry_policy(error, now, limit)
    decided: list[dt.datetime | None] = []

    def decide(failures: int) -> dt.datetime | None:
        decided.append(policy(failures))
        return decided[-1]

    try:
        failures = catalog.note_failure(members, error.code, str(error), decide)
    except HeadraceError as trouble:  # a table was dropped meanwhile, or the catalog does not answer
        return trouble
    again = decided[-1]
    for name in members:
        if again is None:
            events.emit(Suspended(str(name), failures, error.code, error.message))
        else:
            events.emit(RetryPlanned(str(name), failures, (again - now).total_seconds()))
    return None


def timed_out(unit: TableName) -> EnvironmentFault:
    """Return the error of a refresh that was cancelled because it took too long."""
    return EnvironmentFault(
        "REFRESH_TIMEOUT",
        f"The refresh of {unit} took longer than its timeout and was cancelled.",
        hint="Give it a longer timeout, or find out in `headrace history` where the time goes.",
        retryable=True,
    )


def not_ended(unit: TableName) -> EnvironmentFault:
    """Return the error of a group that had tables left to refresh when a run ended."""
    return EnvironmentFault(
        "CANCELLED",
        f"The run ended before all tables that are published with {unit} were refreshed.",
        hint="Nothing is to be done: they are refreshed again.",
        retryable=True,
    )


def input_failed(unit: TableName, error: HeadraceError) -> EnvironmentFault:
    """Return the error of a group that began early, when something that it reads has failed."""
    return EnvironmentFault(
        "INPUT_NOT_READY",
        f"{unit}, which its group reads, failed. [{error.code}] {error.message}",
        hint="Nothing is to be done about this table; it is refreshed when what it reads can be.",
        retryable=True,
    )
