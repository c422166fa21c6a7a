"""Connection strings of PostgreSQL servers, and settings of sessions there.

Passwords are libpq's business: `PGPASSWORD`, `~/.pgpass`, a service file. A string that holds one, or another secret,
is refused, because these strings are kept in the catalog and shown. `env:NAME` stands for one in an environment
variable, which may hold them: the name is kept, and the variable read whenever a connection is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.errors import UserError

ENVIRONMENT = "env:"

SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""Parameters of libpq that nobody but their owner may see."""

PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Timeouts after which a silent server is taken for gone, unless the string sets them.

In seconds, the last in milliseconds; `keepalives_count` counts probes. Without them a host that vanishes blocks a
landing, or a sink, and its lease, for hours.
"""

EXACT_VALUES = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "search_path": "pg_catalog",
    "row_security": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
}
"""Settings under which PostgreSQL writes values so that they can be read back exactly. With `row_security` off a policy
that would hide rows is an error. Queries of the catalogs, and over what was just copied, look expensive to the planner
and are not: compiling them takes seconds, running them a millisecond."""

_ENDING_SESSIONS = {"idle_session_timeout": 140000, "transaction_timeout": 170000}
"""Settings that end sessions like ours, which copy for hours and wait for each other, by the version that began them.
Earlier servers would refuse them."""


def session_settings(options: Mapping[str, str], version: int) -> str:
    """Return the statements by which a session gets settings, and none that a role has end it.

    Args:
        options: The settings.
        version: As `server_version_num`.
    """
    wanted = dict(options) | {name: "0" for name, since in _ENDING_SESSIONS.items() if version >= since}
    return "; ".join(f"SET {name} = '{value}'" for name, value in wanted.items())


@dataclass(frozen=True, slots=True)
class ConnectionStrings:
    """Connection strings of one kind of thing, with errors in its words.

    Args:
        whose: What they belong to, as messages call it: `source`.
        invalid: Makes the error for one that cannot be used.
        read: Takes one apart; the driver's.
        unreadable: The driver's error for one that it cannot read.
    """

    whose: str
    invalid: Callable[[str], UserError]
    read: Callable[[str], Mapping[str, object]]
    unreadable: type[Exception]

    def check(self, url: str) -> None:
        """Refuse malformed connection strings, and those with a password.

        Raises:
            UserError: What `invalid` makes.
        """
        parts = self.parameters(url)
        if url.startswith(ENVIRONMENT):
            return
        for name in SECRETS:
            if parts.get(name):
                raise self.invalid(
                    f"The connection string of the {self.whose} holds a {name}, which would be kept in the catalog."
                )

    def parameters(self, url: str) -> dict[str, str]:
        """Return the parameters of a connection string.

        Raises:
            UserError: What `invalid` makes; with a hint of its own where a variable is not set.
        """
        text = url
        if url.startswith(ENVIRONMENT):
            name = url.removeprefix(ENVIRONMENT)
            text = os.environ.get(name, "")
            if not text:
                error = self.invalid(
                    f"The environment variable {name}, which has the {self.whose}'s connection string, is not set here."
                )
                error.hint = "Set it wherever Headrace runs: postgresql://user:password@host:5432/database."
                raise error
        try:
            return {name: str(value) for name, value in self.read(text).items()}
        except self.unreadable:
            pass
        # outside: the driver's error may quote it
        raise self.invalid(f"The connection string of the {self.whose} cannot be read.")
