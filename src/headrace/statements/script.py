"""Splitting a script into statements at the semicolons that end them."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.sql.reader.syntax.tokens import Kind, Token, tokenize

_BLOCK_WORDS = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})
_BEFORE_BLOCK = frozenset({"", ";", ":", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a script.

    Args:
        text: Its characters, without the semicolon, blanks and comments around it.
        start: Offset of its first character in the script.
        tokens: Its tokens, with offsets in the script.
        end: Offset of the semicolon that ends it, or of the script's end.
    """

    text: str
    start: int
    tokens: tuple[Token, ...]
    end: int


def split_script(script: str) -> tuple[Part, ...]:
    """Cut a script into its statements; empty ones are left out.

    Semicolons inside strings, quoted names, comments and BEGIN … END blocks end nothing.

    Raises:
        UserError: `SYNTAX_ERROR` for a string, quoted name or comment that never ends.
    """
    parts: list[Part] = []
    current: list[Token] = []
    depth = 0
    tokens = tokenize(script)
    for i, token in enumerate(tokens):
        if token.text == ";" and token.kind is Kind.OP and depth == 0:
            parts += _part(script, current, token.start)
            current = []
            continue
        depth = max(0, depth + _nesting(tokens, i, inside=depth > 0, first=len(current)))
        current.append(token)
    return (*parts, *_part(script, current, len(script)))


def _part(script: str, tokens: list[Token], end: int) -> list[Part]:
    if not tokens:
        return []
    start = tokens[0].start
    return [Part(script[start : tokens[-1].end], start, tuple(tokens), end)]


def _nesting(tokens: tuple[Token, ...], at: int, *, inside: bool, first: int) -> int:
    """Return by how much a token changes the depth of BEGIN … END blocks.

    `first` is its index in the statement.
    """
    word = tokens[at].word
    before = tokens[at - 1].word if at else ""
    if word == "BEGIN":
        labelled = first == 2 and before == ":"
        return int(first == 0 or labelled or (inside and before in _BEFORE_BLOCK) or _handler(tokens, at, inside))
    if not inside:
        return 0
    following = tokens[at + 1].word if at + 1 < len(tokens) else ""
    if word == "CASE":
        return int(before != "END")
    if word == "END":
        return 0 if following in _BLOCK_WORDS else -1
    return 0


def _handler(tokens: tuple[Token, ...], at: int, inside: bool) -> bool:
    """Return whether a BEGIN is that of `DECLARE … HANDLER FOR condition BEGIN`."""
    if not inside:
        return False
    for token in reversed(tokens[:at]):
        if token.text == ";":
            return False
        if token.word == "HANDLER":
            return True
    return False
