"""Runs what was typed: SQL by the session, verbs by the same code as in a shell."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import failures
from headrace.cli.console import show
from headrace.cli.invocation import Invocation
from headrace.cli.prompt import pager
from headrace.cli.prompt.pieces import Kind, Piece
from headrace.cli.prompt.statement_words import neither
from headrace.cli.prompt.switches import Switches
from headrace.cli.render import answers
from headrace.cli.render import format as fmt
from headrace.cli.script import run_script
from headrace.cli.surroundings import Caller, called_by
from headrace.errors import HeadraceError
from headrace.serve.caller.words import Words

if TYPE_CHECKING:
    from headrace.api.facade import Headrace

APART = frozenset({"demo", "move-catalog", "serve", "web"})
"""Verbs that have a Spark of their own, and there is one in a process; or want a project that nobody has open."""
LOOKING = frozenset({"--status", "--stop", "--help", "-h"})
"""Options with which they do nothing of the kind."""


class Dispatch:
    """Runs pieces, one after the other.

    Args:
        asked: The global options.
        hr: The open project.
        verbs: The group of all verbs.
        switches: What the user has set at the prompt.
    """

    def __init__(self, asked: Invocation, hr: Headrace, verbs: click.Group, switches: Switches) -> None:
        self._asked = asked
        self._hr = hr
        self._verbs = verbs
        self._switches = switches
        self._paged = 0.0  # seconds that the user looked at pages

    def run(self, piece: Piece) -> bool:
        """Run a piece, and say what is wrong with it; return whether it went well."""
        began, self._paged = time.monotonic(), 0.0
        with self._reported() as outcome, called_by(self.caller()):
            if piece.kind is Kind.SQL:
                self._run_sql(piece.text)
            else:
                outcome.status = self._run_verb(piece)
            if self._switches.file is not None:
                self._switches.file.flush()
        if self._switches.timing and piece.kind in (Kind.SQL, Kind.VERB):
            sys.stdout.write(f"Time: {fmt.seconds(time.monotonic() - began - self._paged)}\n")
        return outcome.status == 0

    def use(self, switch: str) -> bool:
        """Set a switch, and say what is wrong with it; return whether it went well."""
        with self._reported() as outcome:
            self._switches.use(switch)
        return outcome.status == 0

    def caller(self) -> Caller:
        """Return what surrounds a verb that is run now."""
        file = self._switches.file
        paged = self._switches.pager and file is None and sys.stdout.isatty()
        return Caller(
            stdin=sys.stdin,
            stdout=file or sys.stdout,
            stderr=sys.stderr,
            folder=Path.cwd(),
            environment=os.environ,
            width=None,
            height=None,
            root=self._hr.settings.root,
            open=lambda: nullcontext(self._hr),
            served=False,
            page=self._page if paged else None,
        )

    def _page(self, text: str) -> None:
        began = time.monotonic()
        pager.page(text)
        self._paged += time.monotonic() - began

    def _run_sql(self, text: str) -> None:
        if (slip := neither(text, self._verbs.commands)) is not None:
            raise click.ClickException(slip)
        lines = self._switches.expanded
        documents = run_script(
            self._hr,
            text,
            self._asked,
            self._switches.limit,
            lambda value: answers.answer(value, lines=lines, more="\\pset limit N"),
        )
        if self._asked.json:
            show(self._asked, documents, tuple)

    def _run_verb(self, piece: Piece) -> int:
        """Run a verb; return its exit status."""
        try:
            args = piece.words()
        except ValueError as error:
            raise click.ClickException("A quotation has no end.") from error
        args = args[1:] if args[:1] == ["headrace"] else args
        args = [args[0].lower(), *args[1:]] if args else ["--help"]
        if Words(args, {}).project is not None:
            raise click.ClickException(f"This is the prompt of {self._hr.settings.root}; another project has its own.")
        if args[0] in APART and not LOOKING.intersection(args):
            raise click.ClickException(f"{args[0]} needs a process of its own: leave, or use another terminal.")
        if args == ["sql"]:
            raise click.ClickException("This is the prompt already: type the statement.")
        given = [*(["--json"] if self._asked.json else []), *(["--quiet"] if self._asked.quiet else [])]
        found = self._verbs.main([*given, *args], prog_name="headrace", standalone_mode=False)
        return found if isinstance(found, int) else 0

    @contextmanager
    def _reported(self) -> Iterator[_Outcome]:
        """Turn whatever is raised in the block into a message."""
        outcome = _Outcome()
        try:
            yield outcome
            return
        except HeadraceError as error:
            failures.report(error, self._asked)
        except KeyboardInterrupt:
            failures.report_interrupt(self._asked)
        except click.Abort:
            sys.stderr.write("Aborted!\n")
        except click.ClickException as error:
            failures.report_usage(error) if self._asked.json else error.show(file=sys.stderr)
        except OSError as error:
            if self._switches.file is None:
                failures.report_defect(error, self._asked)
            else:
                self._give_up_file(error)
        except Exception as error:  # a defect must not end the user's session
            failures.report_defect(error, self._asked)
        outcome.status = failures.FAILED

    def _give_up_file(self, error: OSError) -> None:
        name = getattr(self._switches.file, "name", "")
        with suppress(click.ClickException):  # says the same
            self._switches.end_file()
        sys.stderr.write(f"Error: {name} cannot be written: {error.strerror}. Results are shown here again.\n")


class _Outcome:
    """The outcome of a piece.

    Attributes:
        status: An exit status.
    """

    def __init__(self) -> None:
        self.status = 0
