"""Connections to a captured server, and what their failures mean.

Passwords are libpq's business: `PGPASSWORD`, `~/.pgpass`, a service file. A URL that holds one, or another secret, is
refused, because URLs are kept in the catalog and shown. `env:NAME` stands for a URL in an environment variable, which
may hold them: the name is kept, and the variable read whenever a connection is made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import conninfo

from headrace.connection_failures import CANCELLED, shortage
from headrace.connection_strings import EXACT_VALUES, PATIENCE, ConnectionStrings, session_settings
from headrace.errors import EnvironmentFault, UserError
from headrace.sources.interruption import interruptible
from headrace.sources.postgres.connection_faults import connection_error
from headrace.watched_connections import ServerSilent, opened, shut_down

Connection = psycopg.Connection[tuple[object, ...]]

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it warns on stderr where nothing can be rolled back

OPTIONS = {**EXACT_VALUES, "lock_timeout": "60s"}
"""Settings of sessions that read. A new slot waits for the transactions that are open then, but not for ever."""

IN_MOTION, EXHAUSTED = "SOURCE_IN_MOTION", "SOURCE_EXHAUSTED"

APPLICATION = "headrace"
"""As the server knows connections of ours: triggers on change tables go by it."""


def _invalid(message: str) -> UserError:
    return UserError(
        "SOURCE_URL_INVALID",
        message,
        hint="Write postgresql://user@host:5432/database, and give the password by PGPASSWORD or ~/.pgpass, the "
        "rest by a service file.",
    )


_STRINGS = ConnectionStrings("source", _invalid, conninfo.conninfo_to_dict, psycopg.ProgrammingError)


def check_url(url: str) -> None:
    """Refuse malformed connection strings, and those with a password.

    Raises:
        UserError: `SOURCE_URL_INVALID`.
    """
    _STRINGS.check(url)


def at_node(url: str, host: str | None = None, port: int | None = None, options: str = "") -> str:
    """Return the connection string of another node of a cluster, or with further options.

    It may hold a password, which the variable of `env:` has: it is for connecting, never to be kept or shown.

    Args:
        url: The connection string of one node.
        host: The other node; None for the same one.
        port: Its port.
        options: Command-line options of the server's process, added to those that are there.
    """
    parts: dict[str, Any] = dict(_STRINGS.parameters(url))
    if host is not None:
        parts.pop("hostaddr", None)
        parts.update(host=host, port=port)
    if options:
        parts["options"] = f"{parts.get('options', '')} {options}".strip()
    return conninfo.make_conninfo("", **parts)


@contextmanager
def connected(url: str, *, replication: bool = False) -> Iterator[Connection]:
    """Open a connection in autocommit mode, closed at the end.

    Args:
        url: The connection string.
        replication: Speak the replication protocol, which takes simple statements only.

    Raises:
        UserError: `SOURCE_URL_INVALID`.
        EnvironmentFault: `SOURCE_UNREACHABLE` (retryable), `SOURCE_LOGIN_REFUSED`.
    """
    with faults():
        try:
            parameters = {**PATIENCE, **_STRINGS.parameters(url), "application_name": APPLICATION}
            connection = opened(parameters, **{"replication": "database"} if replication else {})
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            raise connection_error(error) from error
        with connection, breakable(connection):
            connection.execute(session_settings(OPTIONS, connection.info.server_version))
            yield connection


def breakable(connection: Connection) -> AbstractContextManager[None]:
    """Have a connection be broken where the thread that uses it in a block is interrupted."""
    return interruptible(partial(shut_down, connection))


@contextmanager
def faults() -> Iterator[None]:
    """Turn the driver's errors into Headrace's.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE` for bytes that are no text in their database's encoding,
            `SOURCE_LOST` (retryable) when the connection broke, `SLOT_IN_USE` (retryable) when another
            session has the slot, `SOURCE_BUSY` (retryable) when a lock was
            not to be had, `SOURCE_EXHAUSTED` and `SOURCE_CANCELLED` (retryable) when the server gave up a statement,
            `SOURCE_REFUSED` for missing privileges, `SOURCE_ERROR` for the rest.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise EnvironmentFault(
            "SOURCE_REFUSED",
            "The source's PostgreSQL server does not allow this.",
            detail=str(error).strip(),
            hint="`headrace source check` prints the statements that give the missing privileges.",
        ) from error
    except (psycopg.errors.CharacterNotInRepertoire, psycopg.errors.UntranslatableCharacter) as error:
        raise EnvironmentFault(
            "VALUE_NOT_REPRESENTABLE",
            "A captured table has bytes that are no text in its database's encoding; nothing was landed.",
            detail=str(error).strip(),
            hint="Correct the value, then take a new snapshot: `headrace source resnapshot`.",
        ) from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise busy(error) from error
    except psycopg.errors.ObjectInUse as error:
        raise EnvironmentFault(
            "SLOT_IN_USE",
            "Another process reads the source's replication slot, so nothing can be landed.",
            detail=str(error).strip(),
            hint="`headrace source status` says who. A slot is for one reader: give the other one its own, or "
            "end its process there: SELECT pg_terminate_backend(<PID>);",
            retryable=True,
        ) from error
    except psycopg.OperationalError as error:
        raise _given_up_by_server(error) or lost(error) from error
    except psycopg.Error as error:
        raise EnvironmentFault(
            "SOURCE_ERROR",
            "The source's PostgreSQL server reported an error.",
            detail=str(error).strip(),
            hint="See the server's message; `headrace source check` may say more.",
        ) from error


def busy(error: psycopg.Error, who: str = "") -> EnvironmentFault:
    """Return the error for a lock that was not to be had in time.

    Args:
        error: The driver's.
        who: Those who had it, in words; empty where that is not known.
    """
    return EnvironmentFault(
        "SOURCE_BUSY",
        "Transactions that are open on the source kept Headrace waiting for too long" + (f": {who}." if who else "."),
        detail=str(error).strip(),
        hint="A first snapshot, and one of altered tables, waits for transactions that write.",
        retryable=True,
    )


def _given_up_by_server(error: psycopg.Error) -> EnvironmentFault | None:
    """Return the error for a statement that the server gave up, while the connection is well."""
    if (short := shortage(error.sqlstate)) is not None:
        of, cure = short
        return EnvironmentFault(
            EXHAUSTED,
            f"The source's PostgreSQL server has run out of {of}; nothing was landed.",
            detail=str(error).strip(),
            hint=f"{cure} Then the next landing goes on: what was not landed is still there.",
            retryable=True,
        )
    if error.sqlstate == CANCELLED:
        return EnvironmentFault(
            "SOURCE_CANCELLED",
            "Somebody cancelled a statement of Headrace's on the source's PostgreSQL server; nothing was landed.",
            detail=str(error).strip(),
            hint="Try again: what was not landed is still there. Where it happens again, see who does so there: "
            f"pg_cancel_backend, or a job that ends long statements. Headrace's sessions are named {APPLICATION}.",
            retryable=True,
        )
    return None


def lost(error: psycopg.Error) -> EnvironmentFault:
    """Return the error for a connection that broke, or was given up."""
    hangs = isinstance(error, ServerSilent)
    return EnvironmentFault(
        "SOURCE_LOST",
        "The source's PostgreSQL server hangs: it was given up."
        if hangs
        else "The connection to the source's PostgreSQL server broke.",
        detail=str(error).strip(),
        hint="See what its host, its disks and its processes do; nothing is lost: what was not landed is still there."
        if hangs
        else "Try again: what was not landed is still there.",
        retryable=True,
    )


def in_motion() -> EnvironmentFault:
    """Return the error after which a landing is simply tried again."""
    return EnvironmentFault(
        IN_MOTION,
        "Tables of the source were altered while others were copied again; nothing was landed.",
        hint="Land again.",
        retryable=True,
    )
