"""Runs a command for a caller of the project's server, as the caller's own process would."""

from __future__ import annotations

from functools import partial

import click

from headrace.cli import failures
from headrace.cli.surroundings import Caller, called_by
from headrace.serve.commands import Execute, RunningCommand


def executor(verbs: click.Command) -> Execute:
    """Return what runs commands, given the group of all verbs."""
    return partial(_execute, verbs)


def _execute(verbs: click.Command, command: RunningCommand) -> int:
    """Run a command's words; return the exit status."""
    call = command.call
    caller = Caller(
        stdin=command.stdin,
        stdout=command.stdout,
        stderr=command.stderr,
        folder=call.folder,
        environment=call.environment,
        width=call.width,
        height=call.height,
        root=command.root,
        open=command.project,
    )
    with called_by(caller):
        try:
            found = verbs.main(list(call.args), prog_name="headrace", standalone_mode=False)
        except click.ClickException as error:
            error.show(file=command.stderr)
            return error.exit_code
        except click.Abort:
            command.stderr.write("Aborted!\n")
            return failures.FAILED
    return found if isinstance(found, int) else 0
