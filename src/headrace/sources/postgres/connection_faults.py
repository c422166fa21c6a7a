"""Translates failures to connect: those that may pass, and those somebody must repair.

The driver gives the words of server and libpq only, without a code. What is known to be a refusal is told as one,
unless one of the hosts that were tried failed for a reason that may pass. A server that speaks another language than
English is understood by whether it asked for a password.
"""

from __future__ import annotations

import re

import psycopg

from headrace.errors import EnvironmentFault, UserError

_REFUSED = re.compile(
    "authentication failed|no password supplied|no pg_hba.conf entry|pg_hba.conf rejects|does not exist|not permitted "
    "to log in|permission denied|requires a valid client certificate|certificate|does not match host name|does not "
    "support SSL|authentication method"
)
"""Password, role, database, privileges; TLS."""

_MISWRITTEN = re.compile(
    "connection is bad: (.*invalid .*value|invalid port number|definition of service|.*service file)"
)
"""What libpq says of the connection string before it reaches for a server."""

_PASSING = re.compile(
    "could not (connect|receive|send|translate)|refused|timeout|timed out|closed the connection|reset by peer|starting "
    "up|shutting down|recovery|accepting connections|too many|reserved for|No such file or directory\n|unreachable"
)


def connection_error(error: psycopg.Error) -> UserError | EnvironmentFault:
    """Return the error for a connection that was not made.

    Returns:
        `SOURCE_URL_INVALID`, `SOURCE_LOGIN_REFUSED`, or `SOURCE_UNREACHABLE` (retryable).
    """
    text = str(error).strip()
    if isinstance(error, psycopg.ProgrammingError) or _MISWRITTEN.search(text):
        return UserError(
            "SOURCE_URL_INVALID",
            "The connection string of the source has a parameter that means nothing.",
            detail=text,
            hint="Correct it, or the service file: postgresql://user@host:5432/database?sslmode=verify-full",
        )
    if _is_refused(error, text + "\n"):
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


def _is_refused(error: psycopg.Error, text: str) -> bool:
    if _PASSING.search(text):
        return False
    asked = error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)
    return asked or _REFUSED.search(text) is not None
