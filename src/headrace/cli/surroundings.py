"""A command's surroundings: streams, terminal, working folder, variables, open project.

They are this process's own, or, where a server runs commands of several callers at once, those of the caller: hence in
a context variable, and never in `sys`. A prompt is a caller, too: of the verbs that are typed at it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.api.facade import Headrace


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever called a command: of a server, or by typing it at the prompt.

    Args:
        stdin: Its input.
        stdout: Where results go.
        stderr: Where everything else goes.
        folder: Its working folder.
        environment: Its variables.
        width: Columns of its terminal; None without one.
        height: Lines of it.
        root: The project folder.
        open: Returns the project, which stays open when the command has ended.
        served: Whether a server runs the command; else the prompt does.
        page: Shows a long text page by page; None where whole texts are printed.
    """

    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]
    folder: Path
    environment: Mapping[str, str]
    width: int | None
    height: int | None
    root: Path
    open: Callable[[], AbstractContextManager[Headrace]]
    served: bool = True
    page: Callable[[str], None] | None = None


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def called_by(caller: Caller) -> Iterator[None]:
    """Run the block for a caller."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


def caller() -> Caller | None:
    """Return who called the command, if a server or the prompt runs it."""
    return _CALLER.get()


def served() -> bool:
    """Return whether a server runs the command."""
    return (of := _CALLER.get()) is not None and of.served


def page() -> Callable[[str], None] | None:
    """Return what shows long results page by page; None where they are printed."""
    return None if (of := _CALLER.get()) is None else of.page


def stdin() -> IO[str]:
    """Return the command's input."""
    return sys.stdin if (of := _CALLER.get()) is None else of.stdin


def stdout() -> IO[str]:
    """Return the stream of the command's results."""
    return sys.stdout if (of := _CALLER.get()) is None else of.stdout


def stderr() -> IO[str]:
    """Return the stream of everything else that the command says."""
    return sys.stderr if (of := _CALLER.get()) is None else of.stderr


def environment() -> Mapping[str, str]:
    """Return the variables of whoever called the command."""
    return os.environ if (of := _CALLER.get()) is None else of.environment


def found_from_here(file: Path) -> Path:
    """Return a path given on the command line, so that this process finds it."""
    return file if (of := _CALLER.get()) is None else of.folder / os.path.expanduser(file)
