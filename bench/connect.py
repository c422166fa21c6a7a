"""The same work in a session of one's own and through a Spark Connect server on the same machine, in turns."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kit.connect_server import connect_server

from bench.asked_process import ROOT, AskedProcess
from bench.measure import Figure, listed, median, show
from headrace.config import Settings
from headrace.project.new_project import init_project

CLIENT = ROOT / ".venv-connect" / "bin" / "python"
"""Has what PySpark needs to speak to a Connect server."""

ROWS = 1_000_000
MANY = 50_000

TABLES = f"""
CREATE NAMESPACE lake.c;
CREATE TABLE c.small (k BIGINT, g STRING, v DECIMAL(12,2)) USING iceberg;
CREATE TABLE c.groups (g STRING, name STRING) USING iceberg;
CREATE TABLE c.large (k BIGINT, g STRING, v DECIMAL(12,2)) USING iceberg;
INSERT INTO c.small SELECT id, concat('g', id % 10), id * 0.01 FROM range(1000);
INSERT INTO c.groups SELECT concat('g', id), concat('group ', id) FROM range(1000);
INSERT INTO c.large SELECT id, concat('g', id % 1000), id * 0.01 FROM range({ROWS});
CREATE STREAM TABLE c.filtered REFRESH MODE DIFFERENTIAL AS SELECT k, v FROM c.small WHERE v > 5;
CREATE STREAM TABLE c.summed REFRESH MODE DIFFERENTIAL AS SELECT g, sum(v) AS v, count(*) AS n FROM c.small GROUP BY g;
CREATE STREAM TABLE c.joined REFRESH MODE DIFFERENTIAL AS
    SELECT s.k, r.name, s.v FROM c.small s LEFT JOIN c.groups r ON s.g = r.g;
CREATE STREAM TABLE c.many REFRESH MODE DIFFERENTIAL AS
    SELECT r.name, sum(l.v) AS v, count(*) AS n, max(l.k) AS last FROM c.large l JOIN c.groups r ON l.g = r.g
    GROUP BY r.name
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of work.

    Args:
        name: What it is.
        change: A statement that is not measured, with `{turn}` for the turn's number; None for none.
        asked: What is measured, as `bench.connect_session` reads it.
    """

    name: str
    change: str | None
    asked: dict[str, Any]


_ONE = "INSERT INTO c.small VALUES ({turn}, 'g1', 10.00)"

CASES = (
    Case("SELECT 1", None, {"collect": "SELECT 1"}),
    Case("100,000 rows fetched", None, {"collect": "SELECT * FROM c.large WHERE k < 100000"}),
    Case("one row, filter", _ONE, {"refresh": "c.filtered"}),
    Case("one row, aggregate", _ONE, {"refresh": "c.summed"}),
    Case("one row, outer join", _ONE, {"refresh": "c.joined"}),
    Case(
        f"{MANY:,} of {ROWS:,} rows updated, join and aggregate",
        f"UPDATE c.large SET v = v + 1 WHERE k >= {{turn}} * {MANY} AND k < ({{turn}} + 1) * {MANY}",
        {"refresh": "c.many"},
    ),
    Case(f"the same in full, {ROWS:,} rows", None, {"refresh": "c.many", "full": True}),
)


class _Session(AskedProcess):
    """A process that has a project open.

    Attributes:
        opened: Seconds until its first statement had answered.
    """

    def __init__(self, python: str, folder: Path, environment: dict[str, str]) -> None:
        super().__init__([python, "-m", "bench.connect_session", str(folder)], environment)
        self.opened: float = self.answer()

    def seconds(self, **asked: Any) -> float:
        """Return the seconds that something takes."""
        seconds: float = self.ask(json.dumps(asked))
        return seconds


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure each case in turns, and say how much longer it takes over Spark Connect."""
    if not CLIENT.exists():
        raise SystemExit("What speaks to a Connect server is not installed: scripts/setup-beside connect")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
        own, there = (_made(folder / name, options.master) for name in ("own", "connect"))
        server = stack.enter_context(connect_server(there, folder / "connect.log"))
        local = stack.enter_context(_Session(sys.executable, own.root, {}))
        remote = stack.enter_context(_Session(str(CLIENT), there.root, {"HEADRACE_SPARK_REMOTE": server.address}))
        sessions = (local, remote)
        figures = [_figure("opening, and the first statement", [local.opened], [remote.opened])]
        for session in sessions:
            session.seconds(sql=TABLES)
        for case in CASES:
            times: tuple[list[float], list[float]] = ([], [])
            for turn in range(options.warm_up + options.rounds):
                for session, of in zip(sessions, times, strict=True):
                    if case.change is not None:
                        session.seconds(sql=case.change.format(turn=turn))
                    of.append(session.seconds(**case.asked))
            figures.append(_figure(case.name, *(of[options.warm_up :] for of in times)))
        return figures


def _made(folder: Path, master: str) -> Settings:
    return replace(init_project(folder), spark_master=master)


def _figure(name: str, own: list[float], remote: list[float]) -> Figure:
    detail = f"{median(own):.2f} s {listed(own)}, Connect {median(remote):.2f} s {listed(remote)}"
    return show(Figure("connect", name, median(remote) / median(own), "x", detail=detail))
