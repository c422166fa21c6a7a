"""Reads what is typed, with history and completion, until the user leaves."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import failures
from headrace.cli.invocation import Invocation
from headrace.cli.prompt import pager
from headrace.cli.prompt.dispatch import Dispatch
from headrace.cli.prompt.help_text import help_text
from headrace.cli.prompt.known_names import KnownNames
from headrace.cli.prompt.pieces import Kind, Piece, is_complete, pieces
from headrace.cli.prompt.switches import Switches
from headrace.errors import HeadraceError
from headrace.spark.starting import telling_by

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from headrace.api.facade import Headrace

WELCOME = "SQL, ended by ; or a verb such as status. help lists all, Tab completes, exit or Ctrl-D leaves.\n"


class Prompt:
    """Reads statements and verbs and runs them until the user leaves.

    Args:
        asked: The global options.
        hr: The open project; stays open.
        verbs: The group of all verbs.
        limit: Rows shown of each result.
    """

    def __init__(self, asked: Invocation, hr: Headrace, verbs: click.Group, limit: int) -> None:
        self._asked = asked
        self._verbs = verbs
        self._names = KnownNames(hr)
        self._switches = Switches(limit=limit, quiet=asked.quiet or asked.json)
        self._dispatch = Dispatch(asked, hr, verbs, self._switches)
        self._session = self._new_session(hr.settings.root)

    def loop(self) -> None:
        """Read and run until `exit` or Ctrl-D."""
        if not self._asked.quiet:
            sys.stdout.write(WELCOME)
        goes_on = True
        while goes_on:
            try:
                goes_on = self._round()
            except KeyboardInterrupt:  # drops the line, as in every shell
                continue
            except EOFError:
                break
        with suppress(click.ClickException):
            self._switches.end_file()

    def _round(self) -> bool:
        """Read once, and run what was read; return whether to go on."""
        text = self._read()
        try:
            found = list(pieces(text, self._verbs.commands))
        except HeadraceError as error:
            failures.report(error, self._asked)
            return True
        for piece in found:
            if piece.kind is Kind.LEAVE or piece.text == "\\q":
                return False
            if not self._run(piece):
                break
        self._names.forget()
        return True

    def _read(self) -> str:
        from prompt_toolkit.patch_stdout import patch_stdout

        with patch_stdout(raw=True), telling_by(lambda line: sys.stderr.write(line + "\n")):
            return self._session.prompt("headrace> ")

    def _run(self, piece: Piece) -> bool:
        """Run a piece; return whether the next one may be run."""
        asks_help = piece.kind is Kind.HELP or piece.text in ("\\?", "\\h")
        if asks_help and len(piece.text.split()) == 1:
            self._help()
            return True
        if asks_help:
            piece = Piece(Kind.VERB, piece.text.partition(" ")[2] + " --help", True)
        return self._dispatch.use(piece.text) if piece.kind is Kind.SWITCH else self._dispatch.run(piece)

    def _help(self) -> None:
        text = help_text(self._verbs)
        if self._switches.pager and sys.stdout.isatty():
            pager.page(text)
        else:
            sys.stdout.write(text)

    def _new_session(self, root: Path) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        from headrace.cli.prompt.completion import PromptCompleter

        file = _history(root)
        return PromptSession(
            history=InMemoryHistory() if file is None else FileHistory(str(file)),
            multiline=True,
            key_bindings=self._bindings(),
            lexer=PygmentsLexer(SqlLexer),
            completer=PromptCompleter(self._names, self._verbs, self._dispatch.caller),
            complete_while_typing=False,
            complete_in_thread=True,
            auto_suggest=AutoSuggestFromHistory(),
            prompt_continuation=lambda width, *_: "." * (width - 1) + " ",
        )

    def _bindings(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings

        bindings = KeyBindings()

        @bindings.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if is_complete(buffer.text, self._verbs.commands):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        return bindings


def _history(root: Path) -> Path | None:
    """Return the history's file; None where it cannot be written.

    Only its user can read it: statements may have passwords.
    """
    file = root / ".headrace" / "history"
    try:
        file.parent.mkdir(exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        return None
    return file
