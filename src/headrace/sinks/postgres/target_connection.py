"""Connections to a sink's server, and what their failures mean.

As with sources, passwords are libpq's business (`PGPASSWORD`, `~/.pgpass`, a service file), and `env:NAME` stands for a
connection string in an environment variable, which may hold one: the name is kept, and the variable read at each write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo

from headrace.connection_failures import CANCELLED, ConnectionFailure, connection_failure, shortage
from headrace.connection_strings import EXACT_VALUES, PATIENCE, ConnectionStrings, session_settings
from headrace.errors import EnvironmentFault, UserError
from headrace.watched_connections import ServerSilent, opened

Connection = psycopg.Connection[tuple[object, ...]]

OPTIONS = {
    **EXACT_VALUES,
    "lock_timeout": "30s",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
}
"""Settings of sessions that compare and write. Each statement sees what was committed before it: what is looked at once
a lock is held is what the lock keeps, where a database or a role may have another level set."""

APPLICATION = "headrace sink"
"""The sessions' name, as the server knows it."""


def _invalid(message: str) -> UserError:
    return UserError(
        "SINK_URL_INVALID",
        message,
        hint="Write postgresql://user@host:5432/database, and give the password by PGPASSWORD or ~/.pgpass, the "
        "rest by a service file; or env:NAME for a variable that holds all of it.",
    )


_STRINGS = ConnectionStrings("sink", _invalid, conninfo.conninfo_to_dict, psycopg.ProgrammingError)


def check_url(url: str) -> None:
    """Refuse malformed connection strings, and those with a password.

    Raises:
        UserError: `SINK_URL_INVALID`.
    """
    _STRINGS.check(url)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Open a connection in autocommit mode, closed at the end.

    Raises:
        UserError: `SINK_URL_INVALID`.
        EnvironmentFault: `SINK_UNREACHABLE` (retryable), `SINK_LOGIN_REFUSED`; see `faults`.
    """
    with faults():
        try:
            parameters = {**PATIENCE, **_STRINGS.parameters(url), "application_name": APPLICATION}
            connection = opened(parameters)
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            raise _not_connected(error) from error
        with connection:
            connection.execute(session_settings(OPTIONS, connection.info.server_version))
            yield connection


def _not_connected(error: psycopg.Error) -> UserError | EnvironmentFault:
    text = str(error).strip()
    asked = error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)
    failure = connection_failure(text, asked=asked)
    if isinstance(error, psycopg.ProgrammingError) or failure is ConnectionFailure.MISWRITTEN:
        return UserError(
            "SINK_URL_INVALID",
            "The connection string of the sink has a parameter that means nothing.",
            detail=text,
            hint="Correct it, or the service file: postgresql://user@host:5432/database?sslmode=verify-full",
        )
    if failure is ConnectionFailure.REFUSED:
        return EnvironmentFault(
            "SINK_LOGIN_REFUSED",
            "The sink's PostgreSQL server does not let Headrace in.",
            detail=text,
            hint="Check user, password, database and TLS settings; the password comes from PGPASSWORD or ~/.pgpass. "
            "Nothing is lost: the sink goes on where it stands.",
        )
    return EnvironmentFault(
        "SINK_UNREACHABLE",
        "The sink's PostgreSQL server cannot be reached.",
        detail=text,
        hint="Check host and port, and whether the server runs. Nothing is lost: the sink goes on where it stands.",
        retryable=True,
    )


@contextmanager
def faults() -> Iterator[None]:
    """Turn the driver's errors into Headrace's.

    Raises:
        UserError: `SINK_VALUE_REFUSED` for rows that the table does not take.
        EnvironmentFault: `SINK_LOST`, `SINK_BUSY`, `SINK_EXHAUSTED` and `SINK_CANCELLED` (retryable), `SINK_REFUSED`
            for missing privileges, `SINK_ERROR` for the rest.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise EnvironmentFault(
            "SINK_REFUSED",
            "The sink's PostgreSQL server does not allow this; nothing was written.",
            detail=_words(error),
            hint="The role needs SELECT, INSERT, UPDATE and DELETE on the table, or CREATE on its schema where the "
            "table is made; and a schema headrace of its own: CREATE SCHEMA headrace AUTHORIZATION <role>;",
        ) from error
    except (
        psycopg.errors.LockNotAvailable,
        psycopg.errors.DeadlockDetected,
        psycopg.errors.SerializationFailure,
    ) as error:
        raise EnvironmentFault(
            "SINK_BUSY",
            "Somebody else had the sink's table, or rows of it, locked for too long; nothing was written.",
            detail=_words(error),
            hint="Headrace tries again.",
            retryable=True,
        ) from error
    except psycopg.errors.NullValueNotAllowed as error:
        raise UserError(
            "SINK_VALUE_REFUSED",
            "A row of the stream table has NULL in the column that the target is distributed by; nothing was written.",
            detail=_words(error),
            hint="Have the query leave such rows out, or give them a value; or distribute by another column.",
        ) from error
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise UserError(
            "SINK_VALUE_REFUSED",
            "The sink's table does not take a row of the stream table; nothing was written.",
            detail=_words(error),
            hint="Correct the query, or alter the table so that it takes the value.",
        ) from error
    except psycopg.OperationalError as error:
        raise _given_up_by_server(error) or _lost(error) from error
    except psycopg.Error as error:
        raise EnvironmentFault(
            "SINK_ERROR",
            "The sink's PostgreSQL server reported an error; nothing was written.",
            detail=_words(error),
            hint="See the server's message.",
        ) from error


def _given_up_by_server(error: psycopg.Error) -> EnvironmentFault | None:
    """Return the error for a statement that the server gave up, while the connection is well."""
    if (short := shortage(error.sqlstate)) is not None:
        of, cure = short
        return EnvironmentFault(
            "SINK_EXHAUSTED",
            f"The sink's PostgreSQL server has run out of {of}; nothing was written.",
            detail=_words(error),
            hint=f"{cure} Headrace tries again.",
            retryable=True,
        )
    if error.sqlstate == CANCELLED:
        return EnvironmentFault(
            "SINK_CANCELLED",
            "Somebody cancelled a statement of Headrace's on the sink's PostgreSQL server; nothing was written.",
            detail=_words(error),
            hint="Headrace tries again. Where it happens again, see who does so there: pg_cancel_backend, or a job "
            f"that ends long statements. Headrace's sessions are named {APPLICATION}.",
            retryable=True,
        )
    return None


def _lost(error: psycopg.Error) -> EnvironmentFault:
    return EnvironmentFault(
        "SINK_LOST",
        "The sink's PostgreSQL server hangs: it was given up; what was not committed is not there."
        if isinstance(error, ServerSilent)
        else "The connection to the sink's PostgreSQL server broke; what was not committed is not there.",
        detail=_words(error),
        hint="Headrace tries again, and finds out first what was written.",
        retryable=True,
    )


def _words(error: psycopg.Error) -> str:
    """Return the server's message with its detail; no statement of ours."""
    of = error.diag
    parts = (of.message_primary, of.message_detail, of.message_hint, of.context if of.column_name is None else None)
    return "\n".join(part for part in parts if part) or str(error).strip()
