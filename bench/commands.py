"""Commands as whole processes, with a warm server (`headrace serve`) and without."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Figure, listed, median, show
from headrace.project.new_project import init_project

Words = tuple[str, ...]

TABLE = "shop.counts"
SETUP = (
    "CREATE NAMESPACE shop; CREATE TABLE shop.orders USING iceberg AS SELECT id, id % 3 AS region FROM range(1000);"
    f"CREATE STREAM TABLE {TABLE} AS SELECT region, count(*) AS n FROM shop.orders GROUP BY region"
)
CHANGE: Words = ("sql", "INSERT INTO shop.orders VALUES (1, 1)")
READING: dict[Words, float] = {("status",): 0.5, ("history",): 0.5, ("graph",): 0.5, ("--help",): 0.5}
"""Commands that need no Spark, and how long each may take, in seconds."""
WITH_SPARK: dict[Words, float] = {("sql", "SELECT 1"): 0.5, ("refresh", TABLE): 0.8}
"""Commands that do, and how long each may take beside a warm server."""


class Commands:
    """Runs commands of one project as processes.

    Args:
        folder: The project.
        served: Whether they may use a server.
    """

    def __init__(self, folder: str, *, served: bool) -> None:
        self.folder = folder
        self.served = served
        self._headrace = str(Path(sys.executable).with_name("headrace"))
        if not shutil.which(self._headrace):
            raise SystemExit("the headrace command is not installed beside this Python")

    def seconds(self, words: Words) -> float:
        """Run a command; return its wall time."""
        options = () if self.served else ("--no-serve",)
        start = time.perf_counter()
        subprocess.run([self._headrace, *options, *words], cwd=self.folder, capture_output=True, check=True)
        return time.perf_counter() - start

    def figure(self, words: Words, goal: float | None, turns: int) -> Figure:
        """Measure a command: the median of so many turns after one; before each refresh a row changes."""
        times = []
        for _ in range(turns + 1):
            if words[0] == "refresh":
                self.seconds(CHANGE)
            times.append(self.seconds(words))
        how = "beside a warm server" if self.served else "alone"
        label = f"headrace {' '.join(words)}, whole process, {how}"
        return show(Figure("commands", label, median(times[1:]), "s", goal, detail=listed(times[1:])))


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure each command's wall time."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        init_project(Path(folder))
        alone, served = Commands(folder, served=False), Commands(folder, served=True)
        alone.seconds(("sql", SETUP))
        figures = [alone.figure(words, goal, 7) for words, goal in READING.items()]
        figures += [alone.figure(words, None, 3) for words in WITH_SPARK]
        first = served.seconds(("sql", "SELECT 1"))
        figures.append(show(Figure("commands", "headrace sql SELECT 1, which starts the server", first, "s", None)))
        try:
            figures += [served.figure(words, goal, 7) for words, goal in (READING | WITH_SPARK).items()]
        finally:
            served.seconds(("serve", "--stop"))
    return figures
