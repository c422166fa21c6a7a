"""Translates failures to connect to a source's server."""

from __future__ import annotations

import psycopg

from headrace.connection_failures import ConnectionFailure, connection_failure
from headrace.errors import EnvironmentFault, UserError


def connection_error(error: psycopg.Error) -> UserError | EnvironmentFault:
    """Return the error for a connection that was not made.

    Returns:
        `SOURCE_URL_INVALID`, `SOURCE_LOGIN_REFUSED`, or `SOURCE_UNREACHABLE` (retryable).
    """
    text = str(error).strip()
    asked = error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)
    failure = connection_failure(text, asked=asked)
    if isinstance(error, psycopg.ProgrammingError) or failure is ConnectionFailure.MISWRITTEN:
        return UserError(
            "SOURCE_URL_INVALID",
            "The connection string of the source has a parameter that means nothing.",
            detail=text,
            hint="Correct it, or the service file: postgresql://user@host:5432/database?sslmode=verify-full",
        )
    if failure is ConnectionFailure.REFUSED:
        return EnvironmentFault(
            "SOURCE_LOGIN_REFUSED",
            "The source's PostgreSQL server does not let Headrace in.",
            detail=text,
            hint="Check user, password, database and TLS settings; the password comes from PGPASSWORD or ~/.pgpass. Of "
            "a source that was landed nothing is lost: the server keeps what was not landed.",
        )
    return EnvironmentFault(
        "SOURCE_UNREACHABLE",
        "The source's PostgreSQL server cannot be reached.",
        detail=text,
        hint="Check host and port, and whether the server runs. Of a source that was landed nothing is lost: the "
        "server keeps what was not landed.",
        retryable=True,
    )
