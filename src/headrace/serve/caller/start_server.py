"""Starts a project's server in the background, as build daemons are started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from importlib.util import find_spec

from headrace.serve.caller import address

PATIENCE_SECONDS = 60.0
"""A server that does not listen by then is given up; a second is usual."""

TAKEN = 75
"""Exit status of a server that finds another one in its place."""

BACKGROUND = "HEADRACE_SERVE_BACKGROUND"
"""Variable that tells a server that it runs in the background."""

CODE = "from headrace.cli.main import main; main()"


def start(root: str, tell: Callable[[str], None]) -> bool:
    """Start a server, unless the project does not want one; return whether one listens now.

    Args:
        root: The project folder.
        tell: Is given lines for the user.
    """
    if not _wanted(root) or find_spec("pyspark") is None:  # without it there is nothing to be kept warm
        return False
    try:
        address.make_private(address.serve_folder(root))
        process = _spawn(root)
    except OSError as error:  # a folder that cannot be written, or another user's
        tell(f"No server was started ({error}); this command runs by itself.")
        return False
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        status = process.poll()
        if (connection := address.connect(root)) is not None:
            connection.close()
            if (address.read_address(root) or {}).get("pid") == process.pid:  # not one that another command started
                tell("Started a server that keeps Spark warm; `headrace serve --stop` ends it, idle minutes do, too.")
            return True
        if status is not None and status != TAKEN:
            tell(f"The server did not start (see .headrace/serve/{address.LOG}); this command runs by itself.")
            return False
        time.sleep(0.02)
    tell("No server listened after a minute; this command runs by itself.")
    return False


def _spawn(root: str) -> subprocess.Popen[bytes]:
    log = os.path.join(address.serve_folder(root), address.LOG)
    with open(log, "ab") as file:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", CODE, "-p", root, "serve"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=root,
            env={**os.environ, BACKGROUND: "1"},
            start_new_session=True,
        )


def _wanted(root: str) -> bool:
    """Return whether the project's settings let commands start a server."""
    try:
        with open(os.path.join(root, "headrace.toml"), "rb") as file:
            section = tomllib.load(file).get("serve", {})
    except (OSError, ValueError):
        return False
    return not isinstance(section, dict) or section.get("auto", True) is not False
