"""Commands that only read the catalog, as whole processes."""

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

COMMANDS = (("status",), ("history",), ("graph",), ("--help",))


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure each command's wall time."""
    headrace = str(Path(sys.executable).with_name("headrace"))
    if not shutil.which(headrace):
        raise SystemExit("the headrace command is not installed beside this Python")
    figures = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        init_project(Path(folder))
        for command in COMMANDS:
            times = []
            for turn in range(8):
                start = time.perf_counter()
                subprocess.run([headrace, *command], cwd=folder, capture_output=True, check=True)
                if turn:
                    times.append(time.perf_counter() - start)
            label = f"headrace {' '.join(command)}, whole process"
            figures.append(show(Figure("commands", label, median(times), "s", 0.5, detail=listed(times))))
    return figures
