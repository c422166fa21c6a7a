"""A process that lands for long, how much it and the server hold meanwhile, and whether that grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import psycopg
from catalog_kit.forking import forking, preload

from headrace.errors import HeadraceError
from headrace.names import TableName
from headrace.sources.capture import Landing
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.wal.wal_capture import Captured
from kit.mirrored import Mirrors
from kit.pg_child import Way
from kit.pg_interrupted import BROKEN

MIB = 1 << 20
WARM = 0.2
"""Share of the time after which a process is expected to have what it needs."""

preload(__name__)


def _land(told: Connection, way: Way, folder: Path) -> None:
    """Land whenever told what is captured; acknowledge when told that it is published."""
    while (captured := told.recv()) is not None:
        capture = way(captured, Spool(str(folder)))
        try:
            landing = capture.land(captured.position)
            told.send(landing)
            if told.recv() and landing.keep_position:
                capture.acknowledge(landing.position)
            told.send(None)
        except HeadraceError as error:
            told.send((error.code, f"{error} {error.__cause__!r}"))
        finally:
            capture.clear()


@dataclass(frozen=True, slots=True)
class Sample:
    """What is held at a moment.

    Args:
        memory: Bytes of the process that lands.
        log: Bytes of write-ahead log that the server keeps for the slot; of change tables, under triggers.
        files: Bytes of files of landings.
    """

    memory: int
    log: int
    files: int


@dataclass(slots=True)
class Samples:
    """What was held, sample by sample."""

    all: list[Sample] = field(default_factory=list)

    def early(self, what: str) -> list[int]:
        """The values of the first half, without the beginning."""
        return self._of(what)[int(len(self.all) * WARM) : len(self.all) // 2]

    def late(self, what: str) -> list[int]:
        """The values of the last quarter."""
        return self._of(what)[-len(self.all) // 4 :]

    def growth(self, what: str) -> float:
        """The median of the end, of that of the beginning."""
        return statistics.median(self.late(what)) / statistics.median(self.early(what))

    def __str__(self) -> str:
        lines = []
        for what in ("memory", "log", "files"):
            values = self._of(what)
            shown = [f"{v / MIB:.1f}" for v in values[:: max(1, len(values) // 16)]]
            lines.append(f"{what} MiB: {' '.join(shown)}; at most {max(values) / MIB:.1f}")
        return "\n".join(lines)

    def _of(self, what: str) -> list[int]:
        return [getattr(sample, what) for sample in self.all]


class Soaked:
    """A source that another process lands, and mirrors of it.

    Args:
        url: The database.
        folder: Where rows are written on the way.
        tables: Tables in schema `public`.
        way: How they are captured.
    """

    SLOT = "headrace_soak"

    def __init__(self, url: str, folder: Path, tables: Sequence[str], way: Way) -> None:
        self._url, self._folder, self._way = url, folder, way
        self.names = {TableName("lake", ("s",), t): ("public", t) for t in tables}
        self.mirrors, self.samples, self.landings, self.failures = Mirrors(), Samples(), 0, 0
        self._sampled = 0.0
        capture = self._capture()
        landing = capture.begin()
        self.mirrors.publish(landing)
        capture.clear()
        self.position: Mapping[str, Any] = landing.position
        self._pipe, theirs = forking().Pipe()
        self._child = forking().Process(target=_land, args=(theirs, way, folder), daemon=True)
        self._child.start()
        theirs.close()

    def land(self) -> bool:
        """Land once; whether nothing is left."""
        self._pipe.send(self._what())
        landing = self._pipe.recv()
        if not isinstance(landing, Landing):
            self._failed(*landing)
            return False
        if landing.keep_position:
            self.mirrors.publish(landing)
            assert not landing.gone
            assert landing.position["changes"] >= self.position["changes"]
            self.position, self.landings = landing.position, self.landings + 1
        self._sample()
        self._pipe.send(True)
        if failed := self._pipe.recv():
            self._failed(*failed)
        return landing.caught_up

    def end(self) -> None:
        """Take away what is installed."""
        self._pipe.send(None)
        self._child.join(60)
        self._capture().remove()

    def _failed(self, code: str, text: str) -> None:
        assert code in BROKEN, text
        self.failures += 1

    def _sample(self) -> None:
        """At most twice a second, where a landing holds the most: before anything is let go of."""
        if time.monotonic() - self._sampled < 0.5:
            return
        self._sampled = time.monotonic()
        with psycopg.connect(self._url, autocommit=True) as db:
            query = """
                SELECT (SELECT coalesce(sum(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)
                    FROM pg_replication_slots WHERE slot_name = %(name)s AND database = current_database())
                + (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)
                    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
                    WHERE nspname = %(name)s AND relkind = 'r')
            """
            held = int((db.execute(query, {"name": self.SLOT}).fetchone() or (0,))[0])
        memory = psutil.Process(self._child.pid).memory_info().rss
        files = sum(f.stat().st_size for f in self._folder.rglob("*") if f.is_file())
        self.samples.all.append(Sample(memory, held, files))

    def _capture(self) -> Any:
        return self._way(self._what(), Spool(str(self._folder)))

    def _what(self) -> Captured:
        position = getattr(self, "position", None)
        return Captured(self._url, self.SLOT, self.names, known=self.mirrors.tables, position=position)
