"""Turns whatever goes wrong into a plain message and an exit status."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import click

from headrace.cli import surroundings
from headrace.cli.console import stderr
from headrace.cli.hints import as_commands
from headrace.cli.invocation import Invocation
from headrace.errors import HeadraceError

FAILED = 1
"""Exit status of a command that failed; Click ends with 2 where the command line is wrong."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 and the number of SIGINT."""

MOST_TRACES = 100
"""Traces of internal errors that a project keeps, the newest ones."""

RETRY = "The same may succeed when it is tried again."
"""Said of errors that are retryable."""


def report(error: HeadraceError, asked: Invocation, *, by_command: bool = False) -> None:
    """Print an error Headrace raised on purpose, on stderr.

    Args:
        error: The error.
        asked: Says whether JSON is wanted.
        by_command: Whether a command was typed, not a statement; hints name commands then.
    """
    hint = as_commands(error.hint) if by_command and error.hint else error.hint
    if asked.json:
        document = {"error": {**error.as_dict(), "hint": hint}}
        surroundings.stderr().write(json.dumps(document, ensure_ascii=False) + "\n")
        return
    from rich.text import Text

    console = stderr()
    console.print(Text.assemble(("Error: ", "bold red"), error.message, (f"  [{error.code}]", "dim")), soft_wrap=True)
    if error.place is not None:
        console.print(Text(error.place.render()), soft_wrap=True)
    if error.detail:
        console.print(Text(error.detail), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("Hint: ", "bold"), hint), soft_wrap=True)
    if error.retryable:
        console.print(Text(RETRY), soft_wrap=True)


def report_usage(error: click.ClickException) -> None:
    """Print as JSON what is wrong with a command line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"`{context.command_path} --help` shows the form." if context is not None else None
    document = {"code": "USAGE", "message": error.format_message(), "hint": hint, "retryable": False}
    surroundings.stderr().write(json.dumps({"error": document}, ensure_ascii=False) + "\n")


def report_interrupt(asked: Invocation) -> None:
    """Say what an interrupt left behind."""
    message = "Interrupted. Nothing of what was under way has been published."
    if asked.json:
        document = {"error": {"code": "INTERRUPTED", "message": message, "retryable": True}}
        surroundings.stderr().write(json.dumps(document) + "\n")
    else:
        surroundings.stderr().write(message + "\n")


def report_defect(error: Exception, asked: Invocation) -> None:
    """Print one line about an error nobody foresaw, and keep its trace in a file."""
    file = _write_log(error, asked)
    where = f"the trace is in {file}" if file else "its trace could not be written anywhere"
    cause = f"{type(error).__name__}: {error}".splitlines()[0]
    if asked.json:
        document = {"code": "INTERNAL_ERROR", "message": cause, "log": file and str(file), "retryable": False}
        surroundings.stderr().write(json.dumps({"error": document}, ensure_ascii=False) + "\n")
    else:
        surroundings.stderr().write(f"Error: internal error: {cause}  [INTERNAL_ERROR]; {where}\n")


def _write_log(error: Exception, asked: Invocation) -> Path | None:
    """Write an error's trace to a file; return None where no disk takes it."""
    text = "".join(traceback.format_exception(error))
    name = f"{dt.datetime.now():%Y%m%d-%H%M%S-%f}.log"
    with suppress(HeadraceError, OSError):  # no project, or its disk is the trouble
        folder = asked.root() / ".headrace" / "log"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_own(folder / name, text)
        for old in sorted(folder.glob("*.log"))[:-MOST_TRACES]:
            old.unlink(missing_ok=True)
        return folder / name
    with suppress(OSError):
        file = Path(tempfile.gettempdir()) / f"headrace-{name}"
        _write_own(file, text)
        return file
    return None


def _write_own(file: Path, text: str) -> None:
    """Write a file that nobody else may read: errors show values."""
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(text, encoding="utf-8")
