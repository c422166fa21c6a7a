"""Prints results to stdout and everything else to stderr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any

from headrace.cli import surroundings
from headrace.cli.invocation import Invocation

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH_WITHOUT_TERMINAL = 10_000
"""Columns where output goes to a file or another command: a row stays one line, whatever `COLUMNS` says."""


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    width, height = None if stream.isatty() else WIDTH_WITHOUT_TERMINAL, None
    if (caller := surroundings.caller()) is not None and stream.isatty():  # Rich would measure this process's terminal
        columns = caller.environment.get("COLUMNS", "")
        width, height = int(columns) if columns.isdigit() else caller.width, caller.height
    environment = surroundings.environment()
    return Console(file=stream, width=width, height=height, highlight=False, soft_wrap=False, _environ=environment)


def stdout() -> Console:
    """Return the console for results."""
    return _console(surroundings.stdout())


def stderr() -> Console:
    """Return the console for progress, notices and errors."""
    return _console(surroundings.stderr())


def show(asked: Invocation, document: Any, render: Callable[[], Iterable[RenderableType]]) -> None:
    """Print a result.

    Args:
        asked: Says whether JSON is wanted.
        document: The result as plain JSON values, or (of results that may be large) what makes them, as `render`.
        render: Makes the result for people; called only when that is wanted.
    """
    if asked.json:
        document = document() if callable(document) else document
        _print(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")
        return
    write(render())


def write(parts: Iterable[RenderableType]) -> None:
    """Print renderables on stdout; the terminal wraps text, so that copied SQL stays whole."""
    if surroundings.page() is None:
        for part in parts:
            _print(_drawn(part))
    else:  # pages are made of the whole
        _print("".join(map(_drawn, parts)))


def _drawn(part: RenderableType) -> str:
    """Return a renderable as characters."""
    from headrace.cli.render.format import Verbatim

    if isinstance(part, Verbatim):
        return f"{part}\n"
    from rich.table import Table
    from rich.text import Text

    from headrace.cli.render.narrow import fitted

    console = stdout()
    if isinstance(part, Table):
        part = fitted(part, console.width)
    with console.capture() as captured:
        console.print(part, soft_wrap=isinstance(part, (str, Text)))
    return captured.get()


def _print(text: str) -> None:
    page = surroundings.page()
    if page is None:
        surroundings.stdout().write(text)
    else:
        page(text)


def confirm(asked: Invocation, document: Any, sentence: str) -> None:
    """Say that something was done, unless that was not wanted."""
    if asked.json:
        show(asked, document, tuple)
    elif not asked.quiet:
        surroundings.stdout().write(sentence + "\n")
