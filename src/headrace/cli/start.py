"""Begins the `headrace` command: the project's server runs it, or else this process does.

Nothing that takes time is imported before that is known.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

COLLECT_AFTER = (50_000, 20, 50)
"""Imports and plans are many small objects in no cycles: looking for cycles among them takes a tenth of a command."""


def main() -> None:
    """Run the command; the entry point of the package."""
    gc.set_threshold(*COLLECT_AFTER)
    # As an interpreter ends it looks for cycles among all objects, again and again: a third of `headrace status`. Where
    # the first handler, and so the last to run, has taken them out, it finds nothing to look at.
    atexit.register(gc.freeze)
    from headrace.serve.caller.call import call
    from headrace.serve.caller.words import READING, Words

    status = call(sys.argv[1:])
    if status is not None:
        sys.exit(status)
    if Words(sys.argv[1:], os.environ).verb in READING:
        gc.disable()  # of ten thousand tables the search takes a third of the time, and the process ends soon
    from headrace.cli.main import main as run_here

    run_here()
