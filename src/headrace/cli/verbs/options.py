"""Arguments and options that several verbs share."""

from __future__ import annotations

import sys
from pathlib import Path

import click

names = click.argument("names", nargs=-1, metavar="[NAME]...")
name = click.argument("name")
query_file = click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="A file that holds the query; - is stdin.",
)
schedule = click.option(
    "--schedule", "-s", metavar="TEXT", help="When to refresh: '1 minute', '@hourly', 'ON CHANGE', 'MANUAL'."
)
MODE = click.Choice(("AUTO", "FULL", "DIFFERENTIAL"), case_sensitive=False)


_MARK = "\ufeff"
"""What some editors put before UTF-8."""


def query_text(query: str | None, file: Path | None) -> str | None:
    """Return the query from the argument, a file or stdin; None when none was given."""
    if query is not None and file is not None:
        raise click.UsageError("Give the query directly or with --file, not both.")
    if query == "-" or str(file) == "-":
        return read_stdin()
    return read_text(file) if file is not None else query


def read_stdin() -> str:
    """Read stdin to its end."""
    try:
        return sys.stdin.read().removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise click.UsageError("What came on stdin is not UTF-8 text.") from error


def read_text(file: Path) -> str:
    """Return the text of a file named on the command line."""
    try:
        return file.read_text(encoding="utf-8").removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8 text.") from error
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
