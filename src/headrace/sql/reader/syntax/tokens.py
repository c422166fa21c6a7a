"""Spark SQL cut into tokens with exact character offsets.

Everything that keeps the user's own text (running a FULL refresh, quoting a scalar in the algebra, splitting a
script, showing a caret) needs offsets that never drift. So the text is cut by Spark's own lexical rules:
back-quoted names with doubled quotes, strings with backslash escapes, raw and dollar-quoted strings, nested comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from headrace.errors import Unsupported, UserError, place_at

_COMMENTS = 100
"""Comments in comments that are read: of 100,000 Spark thinks for minutes."""


_DIGITS = 1_000
"""Characters that a number may have."""


class Kind(Enum):
    """The lexical kind of a token."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    OP = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Args:
        kind: What it is.
        text: Its characters as written.
        start: Offset of its first character.
        end: Offset after its last character.
        word: The text in upper case for a word, otherwise the text of an operator, otherwise empty; for comparing.
    """

    kind: Kind
    text: str
    start: int
    end: int
    word: str

    @property
    def is_name(self) -> bool:
        """Return whether it may be an identifier."""
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def name(self) -> str:
        """Return the identifier it spells, without quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text


def counts(text: str) -> bool:
    """Return whether a text is a plain whole number, of a size that may count rows or columns."""
    return text.isascii() and text.isdigit() and len(text) < 20


def is_string(text: str) -> bool:
    """Return whether the text of a token is a string literal."""
    return text[0] in "'\"$" or (text[0] in "rR" and text[1:2] in ("'", '"'))


def words(text: str) -> frozenset[str]:
    """Return a set of words, written as one text."""
    return frozenset(text.split())


_BROKEN = re.compile(r"[\ud800-\udfff]")
"""Matches what Python makes of bytes that are no UTF-8; such a text cannot be sent anywhere."""

_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
"""Matches where a comment in a comment begins, as a hint there does not, and where one ends."""
_QUOTED = re.compile(r"`(?:[^`]|``)*`")
_RAW = re.compile(r"""[rR](?:'[^']*'|"[^"]*")""")
_STRING = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
_DOLLAR = re.compile(r"(\$\w*\$).*?\1", re.DOTALL)
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFD])?(?!\w)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_OP = re.compile(r"<=>|<=|<>|>=|!=|==|\|\||\|>|->|=>|::|.", re.DOTALL)
_USUAL = re.compile(
    r"""\s*+(?:(?P<WORD>[^\W\d]\w*+)(?!['"])|(?P<OP>[(),])|(?<!\.)(?P<NUMBER>\d++)(?![\w.])|(?P<STRING>'[^'\\]*+'(?!')))"""
)
"""Tokens that need no second look: a text may be a list of hundreds of thousands of them."""


# a text is looked at several times: for its tables, its clauses, what replaces its tables
@lru_cache(maxsize=2)
def tokenize(sql: str) -> tuple[Token, ...]:
    """Cut a text into tokens; white space and comments fall between them.

    Raises:
        UserError: `SYNTAX_ERROR` for a string, quoted name or comment that never ends, and for broken characters.
        Unsupported: `QUERY_TOO_DEEP` for comments within comments within comments.
    """
    if broken := _BROKEN.search(sql):
        message = "There is half a character here: the text was decoded with the wrong encoding."
        raise UserError("SYNTAX_ERROR", message, place=place_at(sql, broken.start()), hint="Save it as UTF-8.")
    tokens: list[Token] = []
    at = 0
    while True:
        while usual := _USUAL.match(sql, at):
            tokens.append(_usual_token(usual))
            at = usual.end()
        at = _skip_blank(sql, at)
        if at == len(sql):
            _check_numbers(sql, tokens)
            return tuple(tokens)
        token = _token_at(sql, at, after_dot=bool(tokens) and tokens[-1].text == "." and tokens[-1].end == at)
        tokens.append(token)
        at = token.end


def _check_numbers(sql: str, tokens: list[Token]) -> None:
    """Refuse numbers of thousands of digits, on which Spark would spend minutes."""
    if len(sql) < _DIGITS:
        return
    for token in tokens:
        if token.end - token.start > _DIGITS and token.kind is Kind.NUMBER:
            message = (
                f"A number of {token.end - token.start:,} characters begins here; decimals have 38 digits at most."
            )
            raise UserError("SYNTAX_ERROR", message, place=place_at(sql, token.start))


def _usual_token(match: re.Match[str]) -> Token:
    kind = match.lastgroup or ""
    text = match.group(kind)
    word = text.upper() if kind == "WORD" else text if kind == "OP" else ""
    return Token(Kind[kind], text, match.start(kind), match.end(), word)


def _skip_blank(sql: str, at: int) -> int:
    while True:
        before = at
        if match := _SPACE.match(sql, at):
            at = match.end()
        if sql.startswith("--", at):
            match = _LINE_COMMENT.match(sql, at)
            at = match.end() if match else len(sql)
        elif sql.startswith("/*", at):
            at = _end_of_comment(sql, at)
        if at == before:
            return at


def _end_of_comment(sql: str, start: int) -> int:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, start + len("/*")):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
        if depth > _COMMENTS:
            message = f"More than {_COMMENTS} comments begin here, one in the other."
            raise Unsupported("QUERY_TOO_DEEP", message, place=place_at(sql, start), hint="Close each with */")
    raise _unfinished(sql, start, "comment", "*/")


def _token_at(sql: str, at: int, *, after_dot: bool) -> Token:
    first = sql[at]
    if first == "`":
        return _match(_QUOTED, Kind.QUOTED, sql, at) or _raise(_unfinished(sql, at, "quoted name", "`"))
    if first in "rR" and (token := _match(_RAW, Kind.STRING, sql, at)):
        return token
    if first in "'\"":
        return _match(_STRING, Kind.STRING, sql, at) or _raise(_unfinished(sql, at, "string", first))
    if first == "$" and (token := _match(_DOLLAR, Kind.STRING, sql, at)):
        return token
    # After a dot digits are a field name (`t.1st`), not a number.
    if not after_dot and (token := _match(_NUMBER, Kind.NUMBER, sql, at)):
        return token
    if token := _match(_WORD, Kind.WORD, sql, at):
        return token
    operator = _OP.match(sql, at)
    text = operator.group() if operator else first
    return Token(Kind.OP, text, at, at + len(text), text)


def _match(pattern: re.Pattern[str], kind: Kind, sql: str, at: int) -> Token | None:
    match = pattern.match(sql, at)
    if match is None:
        return None
    text = match.group()
    return Token(kind, text, at, match.end(), text.upper() if kind is Kind.WORD else "")


def _raise(error: UserError) -> Token:
    raise error


def _unfinished(sql: str, at: int, what: str, closing: str) -> UserError:
    return UserError(
        "SYNTAX_ERROR",
        f"A {what} begins here and never ends.",
        place=place_at(sql, at),
        hint=f"Close it with {closing}",
    )
