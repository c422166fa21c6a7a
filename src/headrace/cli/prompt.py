"""The interactive prompt: history, several lines to a statement, completion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.cli import failures
from headrace.cli.invocation import Invocation
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

LEAVE = frozenset({"exit", "quit", "\\q"})
HELP = """\
End a statement with ; to run it. Headrace's own statements:
  CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] name [SCHEDULE '1 minute'] [REFRESH MODE mode] AS query;
  ALTER STREAM TABLE name SET SCHEDULE '5 minutes';     DROP STREAM TABLE [IF EXISTS] name [CASCADE];
  REFRESH STREAM TABLE name [FULL];                     REFRESH ALL STREAM TABLES;
  EXPLAIN STREAM TABLE name;                            SHOW STREAM TABLES;
Everything else goes to Spark. exit; or Ctrl-D leaves."""
KEYWORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT RIGHT FULL CROSS ON USING AS DISTINCT UNION ALL INSERT INTO
VALUES UPDATE SET DELETE MERGE CREATE ALTER DROP TABLE STREAM TABLES REPLACE SCHEDULE REFRESH MODE AUTO
DIFFERENTIAL EXPLAIN SHOW DESCRIBE NAMESPACE USE CASCADE COUNT SUM AVG MIN MAX FILTER CASE WHEN THEN ELSE END AND OR
NOT NULL IS IN BETWEEN LIKE CAST WITH EXISTS
"""


class Prompt:
    """Reads statements and hands them on until the user leaves.

    Args:
        asked: The global options.
        names: Table names to complete besides keywords.
        run: Runs a script; may raise.
    """

    def __init__(self, asked: Invocation, names: Sequence[str], run: Callable[[str], object]) -> None:
        self._asked = asked
        self._run = run
        self._session = self._new_session(names)

    def loop(self) -> None:
        """Read and run until `exit` or Ctrl-D."""
        if not self._asked.quiet:
            sys.stdout.write("End statements with ;   help; explains, exit; or Ctrl-D leaves.\n")
        while True:
            try:
                text = self._session.prompt("headrace> ")
            except KeyboardInterrupt:  # drops the line, as in every shell
                continue
            except EOFError:
                return
            word = text.strip().rstrip(";").strip().lower()
            if word in LEAVE:
                return
            if word in ("help", "\\h", "\\?"):
                sys.stdout.write(HELP + "\n")
            elif word:
                self._run_one(text)

    def _run_one(self, text: str) -> None:
        try:
            self._run(text)
        except HeadraceError as error:
            failures.report(error, self._asked)
        except KeyboardInterrupt:
            failures.report_interrupt(self._asked)
        except Exception as error:  # a defect must not end the user's session
            failures.report_defect(error, self._asked)

    def _new_session(self, names: Sequence[str]) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        folder = self._asked.root() / ".headrace"
        folder.mkdir(exist_ok=True)
        return PromptSession(
            history=FileHistory(str(folder / "history")),
            multiline=True,
            key_bindings=_bindings(),
            lexer=PygmentsLexer(SqlLexer),
            completer=WordCompleter([*KEYWORDS.split(), *names], ignore_case=True, WORD=True),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            prompt_continuation=lambda width, *_: "." * (width - 1) + " ",
        )


def complete(text: str) -> bool:
    """Return whether Enter runs the text.

    It does when the text ends with a semicolon, is a word such as `exit`, or is empty.
    """
    stripped = text.strip()
    return not stripped or stripped.endswith(";") or stripped.lower() in LEAVE | {"help", "\\h", "\\?"}


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
