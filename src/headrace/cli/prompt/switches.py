r"""Switches of the prompt, which begin with a backslash: `\timing`, `\x`, `\o`, `\pset`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import click

from headrace.cli.surroundings import stdout
from headrace.cli.verbs.options import MOST_ROWS
from headrace.suggestions import did_you_mean


@dataclass(slots=True)
class Switches:
    """Settings of the prompt, which the user changes by switches.

    Args:
        limit: Rows shown of each result.
        timing: Whether it is told how long each statement took.
        expanded: Whether each column of a row has a line of its own.
        pager: Whether long results are shown page by page.
        quiet: Whether a change is not confirmed.
        file: Where results go, if not to the terminal.
    """

    limit: int = 100
    timing: bool = False
    expanded: bool = False
    pager: bool = True
    quiet: bool = False
    file: IO[str] | None = field(default=None)

    def use(self, text: str) -> None:
        """Do what a text such as `\\timing on` says.

        Raises:
            ClickException: It cannot be understood, or done.
        """
        name, _, rest = text[1:].partition(" ")
        if (switch := SWITCHES.get(name)) is None:
            meant = did_you_mean(name, SWITCHES).replace("mean ", "mean \\")
            raise click.ClickException(f"There is no \\{name}. {meant}\\? lists all.")
        switch.do(self, rest.strip())

    def end_file(self) -> None:
        """Have results go to the terminal again."""
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                raise click.ClickException(f"{file.name} was not written whole: {error.strerror}.") from error

    def say(self, sentence: str) -> None:
        """Confirm a change."""
        if not self.quiet:
            stdout().write(sentence + "\n")


@dataclass(frozen=True, slots=True)
class Switch:
    """One of them.

    Args:
        form: How it is written.
        help: What it does.
        do: Does it.
    """

    form: str
    help: str
    do: Callable[[Switches, str], None]


def _turned(name: str, now: bool, to: str) -> bool:
    if to.lower() not in ("", "on", "off"):
        raise click.ClickException(f"'{to}' is neither on nor off: \\{name} [on|off].")
    return not now if not to else to.lower() == "on"


def _timing(switches: Switches, to: str) -> None:
    switches.timing = _turned("timing", switches.timing, to)
    switches.say(f"Timing is {_on(switches.timing)}.")


def _expanded(switches: Switches, to: str) -> None:
    switches.expanded = _turned("x", switches.expanded, to)
    switches.say(f"Expanded display is {_on(switches.expanded)}.")


def _output(switches: Switches, given: str) -> None:
    words = _words(given)
    if len(words) > 1:
        raise click.ClickException("\\o takes one file; quote a name with blanks.")
    former = switches.file
    switches.end_file()
    if not words:
        switches.say(f"{former.name} is written; results are shown here." if former else "Results are shown here.")
        return
    path = Path(os.path.expanduser(words[0]))
    try:
        switches.file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error
    switches.say(f"Results go to {path}; \\o ends it.")


def _set(switches: Switches, given: str) -> None:
    name, _, to = given.partition(" ")
    name, to = name.lower(), to.strip()
    if name == "pager":
        switches.pager = _turned("pset pager", switches.pager, to)
    elif name == "limit":
        if not (to.isascii() and to.isdigit() and 0 < int(to) <= MOST_ROWS):
            raise click.ClickException(f"'{to}' is no number of rows: \\pset limit N, 1 to {MOST_ROWS:,}.")
        switches.limit = int(to)
    elif name:
        raise click.ClickException(f"There is no \\pset {name}; there are \\pset pager and \\pset limit.")
    rows = f"{switches.limit:,} row{'' if switches.limit == 1 else 's'}"
    switches.say(f"The pager is {_on(switches.pager)}; up to {rows} of a result are shown.")


def _words(given: str) -> list[str]:
    try:
        return shlex.split(given)
    except ValueError as error:
        raise click.ClickException("A quotation has no end.") from error


def _on(value: bool) -> str:
    return "on" if value else "off"


SWITCHES: Mapping[str, Switch] = {
    "timing": Switch("\\timing [on|off]", "Say how long each statement took.", _timing),
    "x": Switch("\\x [on|off]", "Show each column of a row in a line of its own.", _expanded),
    "o": Switch("\\o [FILE]", "Write results to a file, which is replaced; without one, show them here.", _output),
    "pset": Switch("\\pset pager [on|off]", "Show what is longer than the terminal page by page ($PAGER).", _set),
}
"""All that change something; `\\?` and `\\q` are the prompt's own."""

MORE_FORMS: tuple[tuple[str, str], ...] = (
    ("\\pset limit N", "Show up to N rows of a result."),
    ("\\?, help [VERB]", "List what can be typed, or explain a verb."),
    ("\\q, exit, Ctrl-D", "Leave."),
)
"""Forms that help lists besides the switches."""
