"""Words: a scalar's SQL, cut where the reader cut it, with the role of each word.

Roles are given once, by who knows the syntax: the reader for the user's text, `template` for texts of our own. What is
done to a scalar afterwards is done to its words, so nothing has to find out again which word is a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from headrace.names import quote


class Kind(Enum):
    """The role of a word."""

    COLUMN = auto()
    """A column of the input relation."""
    FUNCTION = auto()
    """The name of a function; an opening bracket follows."""
    LITERAL = auto()
    """Anything else that is, or ends, an operand: constants, types, lambda variables, fields."""
    OPERATOR = auto()
    """Operators, brackets, keywords between operands."""
    HOLE = auto()
    """In a template: where a part goes."""


class Word(NamedTuple):
    """One word of a scalar.

    Args:
        kind: Its role.
        text: Its SQL.
        spaced: Whether white space stands before it.
        name: The name of a COLUMN or HOLE; the lower-case name of a FUNCTION; an OPERATOR in upper case.
    """

    kind: Kind
    text: str
    spaced: bool = False
    name: str = ""


Words = tuple[Word, ...]


def column_word(name: str) -> Word:
    """Return the word for a column of the input, quoted."""
    return Word(Kind.COLUMN, quote(name), False, name)


def operator(text: str, *, spaced: bool = True) -> Word:
    """Return the word for a keyword, an operator or a bracket."""
    return Word(Kind.OPERATOR, text, spaced, text.upper())


def function_word(text: str, *, spaced: bool = False) -> Word:
    """Return the word for a function's name."""
    return Word(Kind.FUNCTION, text, spaced, text.strip("`").lower())


OPENING, CLOSING = operator("(", spaced=False), operator(")", spaced=False)


def render(words: Sequence[Word]) -> str:
    """Return the SQL, on one line unless a string holds a line break."""
    return "".join(f" {each.text}" if each.spaced and i else each.text for i, each in enumerate(words))


def spaced_as(words: Words, like: Word) -> Words:
    """Return words with the blank in front that another word has.

    Args:
        words: The words; the first one may change.
        like: The word that they replace.
    """
    first = words[0]
    return words if first.spaced == like.spaced else (first._replace(spaced=like.spaced), *words[1:])


def bracketed(words: Words) -> Words:
    """Return the words in brackets."""
    return (OPENING, *(spaced_as(words, OPENING)), CLOSING)


def unbracketed(words: Words) -> Words:
    """Return words without brackets around all of them."""
    while words and words[0].text == "(" and words[0].kind is Kind.OPERATOR and closing(words, 0) == len(words) - 1:
        words = words[1:-1]
    return words


def closing(words: Sequence[Word], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`; -1 where none does."""
    depth = 0
    for i in range(start, len(words)):
        if words[i].kind is Kind.OPERATOR:
            depth += (words[i].text in "([") - (words[i].text in ")]")
        if not depth:
            return i
    return -1


@lru_cache(maxsize=1024)
def template(text: str) -> Words:
    """Read a text of our own, with `{name}` where a part goes."""
    return tuple(_read(text))


def _read(text: str) -> Iterator[Word]:
    end = 0
    for found in _TEMPLATE.finditer(text):
        spaced, end, word = found.start() > end, found.end(), found.group()
        if found.lastgroup == "hole":
            yield Word(Kind.HOLE, word, spaced, word[1:-1])
        elif word.upper() in _KEYWORDS or found.lastgroup == "sign":
            yield operator(word, spaced=spaced)
        elif found.lastgroup == "word" and text.startswith("(", end):
            yield function_word(word, spaced=spaced)
        else:
            yield Word(Kind.LITERAL, word, spaced)


_KEYWORDS = frozenset(
    ["AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "DIV"]
)
_TEMPLATE = re.compile(
    r"(?P<hole>\{\w+\})|(?P<text>'(?:\\.|[^'\\])*'|`(?:``|[^`])*`)|(?P<number>\d[\w.]*)|(?P<word>\w+)"
    r"|(?P<sign><=>|<=|<>|>=|!=|==|=>|->|\|\||[^\s\w])"
)
