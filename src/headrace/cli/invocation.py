"""Options of one run of the command: the project, the form of output."""

from __future__ import annotations

import os
import shlex
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import surroundings
from headrace.config import FILE_NAME
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.api.facade import Headrace


_NOT_FOUND = "PROJECT_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options.

    Args:
        project: The folder given with `--project`, or None for the nearest one around the working folder.
        json: Whether results are printed as one JSON document.
        quiet: Whether progress and confirmations are left out.
        no_serve: Whether no server is to be used or started.
    """

    project: Path | None = None
    json: bool = False
    quiet: bool = False
    no_serve: bool = False

    def check_caller(self, *, named: bool) -> None:
        """Refuse another project than that of the server or prompt that runs the command.

        Args:
            named: Whether the command line names the project. What only a variable says is the server's own.

        Raises:
            RunElsewhere: A server runs it; the caller's own process can.
            ClickException: The prompt runs it.
        """
        caller = surroundings.caller()
        if caller is None or self.project is None or not named:
            return
        given = Path(os.path.realpath(caller.folder / os.path.expanduser(self.project)))
        if caller.root.resolve() in (given, given.parent if given.name == FILE_NAME else given):
            return
        if caller.served:
            from headrace.serve.commands import RunElsewhere

            raise RunElsewhere
        raise click.ClickException(f"This is the prompt of {caller.root}; another project has its own.")

    def root(self) -> Path:
        """Return the project folder.

        Raises:
            UserError: `PROJECT_NOT_FOUND` when none was named and none is around the working folder;
                `PROJECT_NOT_OWNED` when the one that is around it is another user's.
        """
        if (caller := surroundings.caller()) is not None:
            return caller.root
        if self.project is not None:
            return self.project
        from headrace.serve.caller.found_project import around, of_another_user

        here = Path.cwd()
        found = around(str(here), FILE_NAME)
        if found is None:
            raise UserError(
                _NOT_FOUND,
                f"There is no {FILE_NAME} in {here} or in a folder above it.",
                hint="Run `headrace init <folder>` to make a project, or name one with --project.",
            )
        if (other := of_another_user(found, FILE_NAME)) is not None:
            raise _not_owned(found, *other)
        return Path(found)

    def root_or_none(self) -> Path | None:
        """Return the project folder; None when none was named and none is around the working folder.

        Raises:
            UserError: `PROJECT_NOT_OWNED`.
        """
        try:
            return self.root()
        except UserError as error:
            if error.code != _NOT_FOUND:
                raise
            return None

    def open(self) -> AbstractContextManager[Headrace]:
        """Open the project for a `with` block.

        Where a server or the prompt runs the command, it is theirs, and stays open.
        """
        if (caller := surroundings.caller()) is not None:
            return caller.open()
        import headrace

        return headrace.open(self.root())


def _not_owned(root: str, path: str, owner: int) -> UserError:
    """Return the error for a project that nobody has named.

    Args:
        root: The project folder.
        path: What of it is another user's.
        owner: The user's number.
    """
    try:
        import pwd

        whose = f"{pwd.getpwuid(owner).pw_name} (uid {owner})"
    except (ImportError, KeyError):  # a container knows few of the users whose files it sees
        whose = f"uid {owner}"
    given = shlex.quote(root)
    return UserError(
        "PROJECT_NOT_OWNED",
        f"{path} belongs to {whose}; a project of another user is opened only where it is named.",
        detail="Its settings and functions run code with your rights.",
        hint=f"If you trust it, name it: --project {given}, or HEADRACE_PROJECT={given}.",
    )


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)
"""Gives a verb the global options as its first argument."""


def invocation(context: click.Context) -> Invocation:
    """Return the global options of a running verb."""
    found = context.find_object(Invocation)
    return found if found is not None else Invocation()
