"""Decide how many tasks of Spark run at once on one machine, where Headrace may choose."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

ALL_CORES = "local[*]"
_CGROUPS = Path("/sys/fs/cgroup")


def with_spare_slots(master: str) -> tuple[str, dict[str, str]]:
    """Give a session on all cores half as many task slots more, for loads beside refreshes.

    A task is never interrupted, and one that loads a large table runs as long as the load; without a slot to spare, a
    refresh of a few rows would wait for it, or run its own tasks one after the other. Refreshes are cut into as many
    tasks as there are cores, as before.

    Args:
        master: Spark's master, as the project has it; who names a number of slots gets that number.

    Returns:
        The master for Spark, and options that go with it.
    """
    if master != ALL_CORES:
        return master, {}
    cores = available_cores()
    return f"local[{cores + max(1, cores // 2)}]", {"spark.default.parallelism": str(cores)}


def available_cores(cgroups: Path = _CGROUPS) -> int:
    """Return how many cores this process may use, at least one, as Java counts them.

    Args:
        cgroups: Where the kernel shows the limits of containers.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroups)
    return max(1, allowed if quota is None else min(allowed, quota))


def _quota(cgroups: Path) -> int | None:
    """Return the cores that a container is limited to, rounded up; None without a limit."""
    with suppress(OSError, ValueError):
        quota, period = (cgroups / "cpu.max").read_text().split()
        return -(-int(quota) // int(period))
    with suppress(OSError, ValueError):
        quota, period = ((cgroups / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return -(-int(quota) // int(period)) if int(quota) > 0 else None
    return None
