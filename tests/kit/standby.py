"""A replica of a private PostgreSQL that can be promoted, with the slots that PostgreSQL 17 keeps in step."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from kit.logical import LogicalServer


class Standby:
    """A replica that streams from a server. Its log and socket are in its own folder.

    Args:
        primary: The server.
        folder: Where it is; the servers' user must be able to write there.
    """

    def __init__(self, primary: LogicalServer, folder: Path) -> None:
        self._primary, self._data = primary, folder / "data"
        primary.run(
            "pg_basebackup", "-D", str(self._data), "-d", primary.url("postgres"), "-R", "-c", "fast", "-X", "s", "-N"
        )
        settings = {
            "primary_slot_name": "standby",
            "primary_conninfo": f"host={primary.host} user=postgres dbname=postgres",
            "hot_standby_feedback": "on",
        }
        text = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write(text)
        options = f'-h "" -k {folder}'
        primary.run("pg_ctl", "-w", "-o", options, "-l", str(folder / "log"), "-D", str(self._data), "start")
        self.host = folder

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.host}"

    def connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(self.url(database), autocommit=True)

    def catch_up(self) -> None:
        """Wait until it has all that the primary has committed."""
        with self._primary.connect("postgres") as db:
            ahead = "SELECT pg_current_wal_flush_lsn() > replay_lsn FROM pg_stat_replication WHERE state = 'streaming'"
            while db.execute(ahead).fetchone() != (False,):
                db.execute("SELECT pg_sleep(0.02)")

    def part(self) -> None:
        """Receive nothing more from the primary."""
        with self.connect("postgres") as db:
            db.execute("ALTER SYSTEM SET primary_conninfo = ''")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() != (0,):
                db.execute("SELECT pg_sleep(0.02)")

    def promote(self) -> None:
        """Make it a server of its own, on a timeline of its own."""
        with self.connect("postgres") as db:
            assert db.execute("SELECT pg_promote()").fetchone() == (True,)

    def stop(self) -> None:
        with suppress(Exception):
            self._primary.run("pg_ctl", "-w", "-D", str(self._data), "-m", "immediate", "stop")


@contextmanager
def standby(primary: LogicalServer) -> Iterator[Standby]:
    """A replica beside a server; what the server keeps for it is `standby`, a physical slot."""
    folder = primary.folder.parent / f"{primary.folder.name}-standby"
    folder.mkdir()
    primary.own(folder)
    with primary.connect("postgres") as db:
        db.execute("SELECT pg_create_physical_replication_slot('standby', true)")
    replica = Standby(primary, folder)
    try:
        yield replica
    finally:
        replica.stop()
        with suppress(psycopg.Error), primary.connect("postgres") as db:
            db.execute("SELECT pg_drop_replication_slot('standby')")
        shutil.rmtree(folder, ignore_errors=True)
