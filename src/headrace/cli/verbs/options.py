"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import click

from headrace.cli.surroundings import found_from_here, stdin
from headrace.schedule.options import KEYS


def stream_tables(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return names of stream tables for a shell's completion; none where there is no project."""
    from headrace import config
    from headrace.catalog import Catalog
    from headrace.catalog.inspection import is_current
    from headrace.cli.invocation import Invocation

    with suppress(Exception):  # whatever is wrong, a shell that completes must not be told
        root = Invocation(context.find_root().params.get("folder")).root()
        url = config.load(root).catalog_url
        if not is_current(url):  # opening it would migrate it, and lock out hosts that run an older version
            return []
        with Catalog.open(url, create=False) as catalog:
            return [text for table in catalog.stream_tables() if (text := str(table.name)).startswith(begun)]
    return []


names = click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=stream_tables)
name = click.argument("name", shell_complete=stream_tables)
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
properties = click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"A property: {', '.join(KEYS)}. As often as there are any.",
)
MOST_ROWS = 1_000_000
"""Shown at once; more than a catalog can count to would fail there."""

Command = TypeVar("Command", bound=Callable[..., object])


def limit(default: int, what: str) -> Callable[[Command], Command]:
    """Declare how much is shown.

    Args:
        default: How much unless it is said.
        what: What that counts, for the help.
    """
    return click.option(
        "--limit", "-n", type=click.IntRange(1, MOST_ROWS), default=default, show_default=True, help=what
    )


def definition(*, load: str, mode: str | None = None) -> Callable[[Command], Command]:
    """Declare arguments and options of verbs that create a stream table, or a version of one.

    Args:
        load: When it is loaded, if not now.
        mode: How it is refreshed unless `--mode` says it; None where that is inherited.
    """
    inherited = "How it is refreshed." if mode else "How it is refreshed; else as the public one."
    declared = (
        name,
        click.argument("query", required=False),
        query_file,
        schedule,
        click.option("--mode", "-m", type=MODE, default=mode, show_default=bool(mode), help=inherited),
        properties,
        click.option("--load/--no-load", "initialize", default=True, help=f"Load it now (the default), or {load}."),
    )

    def declare(command: Command) -> Command:
        for each in reversed(declared):
            command = each(command)
        return command

    return declare


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Return texts by key, from texts such as `KEY=VALUE`."""
    found: dict[str, str] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"'{text}' is no KEY=VALUE.")
        if key.strip() in found:
            raise click.UsageError(f"{key.strip()} is given twice.")
        found[key.strip()] = value.strip()
    return found


_MARK = "\ufeff"
"""The byte order mark, which some editors put before UTF-8."""


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
        return stdin().read().removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise click.UsageError("What came on stdin is not UTF-8 text.") from error


def read_text(file: Path) -> str:
    """Return the text of a file named on the command line."""
    try:
        return found_from_here(file).read_text(encoding="utf-8").removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8 text.") from error
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
