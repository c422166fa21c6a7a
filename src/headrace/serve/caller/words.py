"""Reads from a command line's words alone what it asks of a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from headrace.serve.caller.found_project import around, of_another_user

LOCAL = frozenset({"init", "doctor", "run", "serve", "demo", "web", "completion", "move-catalog"})
"""Verbs that are always run by the process that was called."""

STARTING = frozenset(
    [
        "sql",
        "create",
        "alter",
        "drop",
        "refresh",
        "verify",
        "explain",
        "validate",
        "maintain",
        "deploy",
        "source",
        "sink",
        "key",
        "repair",
    ]
)
"""Verbs that as a rule need Spark: where no server runs, they start one."""

READING = frozenset({"status", "history", "graph", "lineage", "show-create", "diamonds"})
"""Verbs that read the catalog, say what it has, and end."""

VALUED = ("-p", "--project")
SWITCHES = frozenset({"--json", "--quiet", "-q", "--no-serve"})
NEVER = "HEADRACE_NO_SERVE"
"""Environment variable that does for every command what `--no-serve` does for one."""


class Words:
    """A command line as far as it must be understood without Click.

    Args:
        args: The words after `headrace`.
        environment: Variables that options may come from.

    Attributes:
        verb: The first word that is no option; None when there is none.
        project: The project folder as it was given, or None.
        quiet: Whether nothing but results is wanted.
        served: Whether a server may be asked.
    """

    def __init__(self, args: Sequence[str], environment: Mapping[str, str]) -> None:
        self.verb: str | None = None
        self.project = environment.get("HEADRACE_PROJECT") or None
        self.quiet = False
        self.served = environment.get(NEVER, "").lower() in ("", "0", "false", "no")
        queue = list(args)
        while queue and (word := queue.pop(0)) != "--":
            if word in VALUED and queue:
                self.project = queue.pop(0)
            elif word.startswith("--project="):
                self.project = word.partition("=")[2]
            elif word in SWITCHES:
                self.quiet = self.quiet or word in ("--json", "--quiet", "-q")
                self.served = self.served and word != "--no-serve"
            elif word in ("-h", "--help", "--version"):
                self.served = False
            elif self.verb is None and not word.startswith("-"):
                self.verb = word
            elif self.verb is None and not word.startswith("--"):
                self._read_letters(word[1:], queue)
        self.served = self.served and self.verb is not None and self.verb not in LOCAL

    def _read_letters(self, letters: str, queue: list[str]) -> None:
        """Read options of one letter that are written as one word; a value may follow the last."""
        for at, letter in enumerate(letters):
            if letter == "p":
                value = letters[at + 1 :] or (queue.pop(0) if queue else None)
                self.project = self.project if value is None else value
                return
            self.quiet = self.quiet or letter == "q"
            self.served = self.served and letter != "h"

    def root(self, folder: str, file: str) -> str | None:
        """Return the project folder, resolved; None when there is none.

        None, too, where it was found, not named, and is another user's.

        Args:
            folder: The working folder.
            file: Name of the file that a project has.
        """
        if self.project is not None:
            given = os.path.join(folder, os.path.expanduser(self.project))
            given = os.path.dirname(given) if os.path.basename(given) == file else given
            return os.path.realpath(given) if os.path.isfile(os.path.join(given, file)) else None
        found = around(folder, file)
        return None if found is None or of_another_user(found, file) else found
