"""A process that promotes a deployment at the same moment as another one.

    python promoter.py <project> <folder> <number>

Process 0 makes the pipeline and the deployment; each says that it is ready by a file in the folder, and begins when
both are. Afterwards process 0 tells whether everything is whole, and what lies about.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from deployer import create, left, outside, pipeline, whole

import headrace
from headrace.errors import HeadraceError

PATIENCE = 300.0
BOTH = ("0", "1")


def main(project: str, folder: Path, number: str) -> None:
    with headrace.open(project) as hr:
        hr.sql("SELECT 1").collect()
        if number == "0":
            pipeline(hr)
            create(hr)
        meet(folder, "ready", number)
        try:
            hr.promote_all_green()
            print("answer done", flush=True)
        except HeadraceError as error:
            print("answer", error.code, flush=True)
        meet(folder, "ended", number)
        if number == "0":
            print("whole", whole(hr), left(hr), outside(hr), len(hr.green_status()), flush=True)


def meet(folder: Path, what: str, number: str) -> None:
    """Wait until both processes have come as far."""
    (folder / f"{what}-{number}").touch()
    give_up = time.monotonic() + PATIENCE
    while not all((folder / f"{what}-{each}").exists() for each in BOTH):
        if time.monotonic() > give_up:
            raise TimeoutError(f"the other process is not {what}")
        time.sleep(0.005)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
