"""Ctrl-C for processes that tests start."""

from __future__ import annotations

import signal


def take_sigint() -> None:
    """Have a new process take Ctrl-C, to be called in it: children of a shell's background job inherit to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
