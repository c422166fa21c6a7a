"""Shows long texts page by page."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

NOT_FOUND = (126, 127)
"""Exit statuses of a shell that cannot run the pager."""

LESS = "FRX"
"""Options of `less` where the user has none: leave when it fits, show colours, keep what was shown."""


def pager_of(environment: Mapping[str, str]) -> str | None:
    """Return the command that shows pages; None where the user wants none, or there is none."""
    given = environment.get("PAGER")
    if given is not None:
        return given.strip() or None
    return next((name for name in ("less", "more") if shutil.which(name)), None)


def is_long(text: str, width: int, height: int) -> bool:
    """Return whether a text does not fit on the terminal together with the next prompt."""
    from rich.cells import cell_len
    from rich.text import Text

    lines = text.splitlines()
    if len(lines) >= height:
        return True
    plain = (Text.from_ansi(line).plain for line in lines)
    return sum(max(1, -(-cell_len(line) // width)) for line in plain) >= height - 1


def page(text: str, environment: Mapping[str, str] | None = None) -> None:
    """Show a text: by a pager if it is longer than the terminal.

    Args:
        text: The text, with colours or without.
        environment: Where `PAGER` and `LESS` are looked for.
    """
    variables = os.environ if environment is None else environment
    size = shutil.get_terminal_size()
    command = pager_of(variables) if is_long(text, size.columns, size.lines) else None
    if command is None or not _paged(command, text, {"LESS": LESS, **variables}):
        sys.stdout.write(text)


def _paged(command: str, text: str, environment: Mapping[str, str]) -> bool:
    """Run a pager; return whether it could be run."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        child = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.PIPE,
            env=dict(environment),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        with suppress(BrokenPipeError):  # the user has seen enough
            child.communicate(text.encode("utf-8", "replace"))
        return child.wait() not in NOT_FOUND
    finally:
        signal.signal(signal.SIGINT, former)
