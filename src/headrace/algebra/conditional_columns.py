"""Tells the columns that decide about an expression from those whose values it takes."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.words import Kind, Word, Words

_CONDITION_FIRST = frozenset({"if", "iff", "nvl2"})
"""Functions whose first argument decides between the others."""


def deciding_columns(words: Words) -> tuple[frozenset[str], frozenset[str]]:
    """Return the columns in conditions of CASE and functions such as `if`, and others.

    A column may be among both.

    Args:
        words: The expression.
    """
    found: tuple[set[str], set[str]] = (set(), set())
    around = [_Part(False, False)]
    before = ""
    for word in words:
        if word.kind is Kind.COLUMN:
            found[0 if around[-1].deciding else 1].add(word.name)
        elif word.kind is not Kind.FUNCTION:
            _step(word, around, before)
        before = word.name if word.kind is Kind.FUNCTION else ""
    return frozenset(found[0]), frozenset(found[1])


@dataclass(slots=True)
class _Part:
    """An open bracket, or an open CASE, of the expression that is being read.

    Args:
        deciding: Whether columns here decide.
        outside: Whether those around it do.
        branching: Whether it ends to decide with the next comma.
    """

    deciding: bool
    outside: bool
    branching: bool = False


def _step(word: Word, around: list[_Part], function: str) -> None:
    """Follow brackets and CASE; `function` is called by the bracket that opens."""
    inner = around[-1]
    if word.kind is not Kind.OPERATOR:
        return
    if word.name in ("(", "["):
        chooses = function in _CONDITION_FIRST
        around.append(_Part(inner.deciding or chooses, inner.deciding, chooses))
    elif word.name == "CASE":
        around.append(_Part(True, inner.deciding))
    elif word.name in (")", "]", "END") and len(around) > 1:
        around.pop()
    elif word.name == "WHEN":
        inner.deciding = True
    elif word.name in ("THEN", "ELSE") or (word.name == "," and inner.branching):
        inner.deciding, inner.branching = inner.outside, False
