"""Processes that a test starts and does not leave behind."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def killed_at_end(child: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill a process at the end of the block, where `Popen`'s own block would wait for one that hangs."""
    with child:
        try:
            yield child
        finally:
            child.kill()
