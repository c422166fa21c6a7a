"""Cuts what was typed into statements, verbs and switches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from headrace.cli.prompt.statement_words import SECOND, neither, verb_of
from headrace.errors import HeadraceError
from headrace.statements.script import split_script

LEAVING = frozenset({"exit", "quit"})
LONG = frozenset({"create", "alter", "drop"})
"""Verbs that go on over several lines until a semicolon, as the statements do that begin with these words."""


class Kind(Enum):
    """The kind of a piece."""

    SQL = auto()
    VERB = auto()
    SWITCH = auto()
    HELP = auto()
    LEAVE = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """One of the things that were typed.

    Args:
        kind: What it is.
        text: Its characters, without the semicolon.
        ended: Whether nothing more belongs to it.
    """

    kind: Kind
    text: str
    ended: bool

    def words(self) -> list[str]:
        """Return its words, as a shell reads them.

        Raises:
            ValueError: A quotation has no end.
        """
        return shlex.split(self.text)


_BLANK = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"[a-zA-Z]+(?=\s|;|$)")
_QUOTED = re.compile(r"""[^;'"\\\n]|\\.|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


def pieces(text: str, verbs: Collection[str]) -> Iterator[Piece]:
    """Yield the pieces of a text.

    Args:
        text: What was typed.
        verbs: All verbs.

    Raises:
        UserError: `SYNTAX_ERROR` for SQL that ends inside a string, a quoted name or a comment.
    """
    at = 0
    while True:
        begin = _skipped(text, at)
        if begin == len(text):
            return
        piece, at = _next(text, begin, verbs)
        if piece is None:
            return
        yield piece


def is_complete(text: str, verbs: Collection[str]) -> bool:
    """Return whether Enter runs a text, rather than beginning a new line of it.

    Statements end with a semicolon. Verbs may do without where nothing else can be meant.
    """
    try:
        found = list(pieces(text, verbs))
    except HeadraceError as error:  # what never ends can be gone on with, anything else is to be told
        return "never ends" not in error.message and text.rstrip().endswith(";")
    if not found or found[-1].ended:
        return True
    return found[-1].kind is Kind.SQL and neither(found[-1].text, verbs) is not None  # a slip is told at once


def _skipped(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank is not None else at


def _next(text: str, at: int, verbs: Collection[str]) -> tuple[Piece | None, int]:
    if text[at] == "\\":
        end = _end_of_line(text, at)
        return Piece(Kind.SWITCH, text[at:end].rstrip().rstrip(";").rstrip(), True), end
    word = _WORD.match(text, at)
    said = word.group().lower() if word is not None else ""
    if said in LEAVING and not text[at + len(said) :].strip(" \t\r\n;"):
        return Piece(Kind.LEAVE, said, True), len(text)
    if said == "help":
        end = min(_end_of_line(text, at), (text + ";").index(";", at))
        return Piece(Kind.HELP, text[at:end].strip(), True), end
    if (verb := verb_of(text[at:], verbs)) is not None:
        end, closed = _end_of_words(text, at, many_lines=verb in LONG)
        words = text[at:end].strip()
        alone = verb in SECOND and words.lower() == verb  # a statement may begin so
        return Piece(Kind.VERB, words, text[end : end + 1] == ";" or (closed and not alone and verb not in LONG)), end
    parts = split_script(text[at:])
    if not parts:
        return None, len(text)
    end = at + parts[0].end
    return Piece(Kind.SQL, text[at:end].strip(), end < len(text)), end


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _end_of_words(text: str, at: int, *, many_lines: bool) -> tuple[int, bool]:
    """Return where a verb's words end, and whether each quotation in them does."""
    while at < len(text):
        if (match := _QUOTED.match(text, at)) is not None:
            at = match.end()
        elif many_lines and text[at] == "\n":
            at += 1
        else:
            break
    closed = at == len(text) or text[at] in ";\n"
    return at if closed else len(text), closed
