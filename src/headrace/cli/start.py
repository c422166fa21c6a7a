"""Begins the `headrace` command: the project's server runs it, or else this process does.

Nothing that takes time is imported before that is known.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; the entry point of the package."""
    from headrace.serve.caller.call import call

    status = call(sys.argv[1:])
    if status is not None:
        sys.exit(status)
    from headrace.cli.main import main as run_here

    run_here()
