"""Tells failures that may pass from those that somebody must repair.

Of failures to connect the driver gives the words of server and libpq only, without a code. What is known to be a
refusal is told as one, unless one of the hosts that were tried failed for a reason that may pass. A server that speaks
another language than English is understood by whether it asked for a password. A statement that a server gives up comes
with an SQLSTATE, although the driver has one class for that and for a connection that broke.
"""

from __future__ import annotations

import re
from enum import Enum

_REFUSED = re.compile(
    "authentication failed|no password supplied|no pg_hba.conf entry|pg_hba.conf rejects|does not exist|not permitted "
    "to log in|permission denied|requires a valid client certificate|certificate|does not match host name|does not "
    "support SSL|authentication method"
)
"""Password, role, database, privileges; TLS."""

_MISWRITTEN = re.compile(
    "connection is bad: (.*invalid .*value|invalid port number|definition of service|.*service file)"
)
"""Matches libpq's errors about the connection string, before it tries to reach a server."""

_PASSING = re.compile(
    "could not (connect|receive|send|translate)|refused|timeout|timed out|closed the connection|reset by peer|starting "
    "up|shutting down|recovery|accepting connections|too many|reserved for|No such file or directory\n|unreachable"
)


class ConnectionFailure(Enum):
    """The reason why a connection was not made."""

    MISWRITTEN = "the connection string means nothing"
    REFUSED = "the server does not let one in"
    UNREACHABLE = "the server cannot be reached now"


def connection_failure(text: str, *, asked: bool) -> ConnectionFailure:
    """Return why a connection was not made.

    Args:
        text: The driver's words.
        asked: Whether the server asked for a password.
    """
    text = text.strip()
    if _MISWRITTEN.search(text):
        return ConnectionFailure.MISWRITTEN
    if not _PASSING.search(text + "\n") and (asked or _REFUSED.search(text)):
        return ConnectionFailure.REFUSED
    return ConnectionFailure.UNREACHABLE


CANCELLED = "57014"
"""The state of a statement that somebody cancelled."""

_SHORTAGES = {
    "53100": ("disk space", "Make room on its disks; what was begun there is undone, and frees what it took."),
    "53200": ("memory", "See what else runs there, and its settings of memory (work_mem, maintenance_work_mem)."),
    "53300": ("connections", "End sessions that nobody uses, or raise max_connections."),
    "53400": (
        "what its configuration allows",
        "The detail says what. Replication slots: drop those that nobody uses, or raise max_replication_slots; "
        "temporary files: raise temp_file_limit.",
    ),
}


def shortage(state: str | None) -> tuple[str, str] | None:
    """Return what a server has run out of, and what is to be done; None for another error.

    Args:
        state: The SQLSTATE.
    """
    if state is None or not state.startswith("53"):
        return None
    return _SHORTAGES.get(state, ("resources", "The detail says of which."))
