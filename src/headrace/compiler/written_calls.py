"""Calls of aggregates as they stand in a query's text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from headrace.errors import place_at
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.syntax.tokens import Token
from headrace.sql.refinements import Refinement

OPENING, CLOSING = ("(", "["), (")", "]")
"""Brackets."""


class WrittenCall:
    """A call of an aggregate in a text.

    Args:
        query: The text.
        tokens: From its name to its closing bracket.
        tail: What follows, WITHIN GROUP and FILTER.
    """

    def __init__(self, query: str, tokens: Sequence[Token], tail: Sequence[Token]) -> None:
        self.query = query
        self.tokens = tokens
        self.tail = tail
        self.function = tokens[0].text.lower()
        self.key = tuple(token.word or token.text for token in (*tokens, *tail))

    @classmethod
    def at(cls, query: str, tokens: Sequence[Token], at: int) -> WrittenCall | None:
        """Return the call whose name is a token.

        None where it is no name of a call, or that of a window function.
        """
        if at + 1 >= len(tokens) or not tokens[at].is_name or tokens[at + 1].text != "(":
            return None
        end = stop = closing(tokens, at + 1)
        while (opening := _clause(tokens, stop)) is not None:
            stop = closing(tokens, opening)
        after = tokens[stop].word if stop < len(tokens) else ""
        return None if after in ("OVER", "IGNORE", "RESPECT") else cls(query, tokens[at:end], tokens[end:stop])

    @property
    def place(self) -> tuple[int, int]:
        """Return line and column of its name."""
        place = place_at(self.query, self.tokens[0].start)
        return place.line, place.column

    @property
    def arguments(self) -> list[str]:
        """Return its arguments as written."""
        return [self.written(each) for each in arguments_of(self.tokens[2:-1])]

    @property
    def quantifier(self) -> str:
        """Return DISTINCT or ALL as written; nothing without one."""
        first, *others = self.tokens[2:-1] or (self.tokens[0],)
        # alone, or with a field, it is a column
        quantifies = first.word in ("DISTINCT", "ALL") and others and others[0].text not in (",", ".")
        return first.text if quantifies else ""

    @property
    def value(self) -> str:
        """Return its first argument as written, without DISTINCT or ALL."""
        first = next(arguments_of(self.tokens[2:-1]))
        return self.written(first[1:] if self.quantifier else first)

    def has(self, word: str) -> bool:
        """Return whether a word begins what follows its closing bracket."""
        return any(token.word == word for token in self.tail[:1])

    def filter(self) -> str:
        """Return the condition of FILTER; nothing without one."""
        at = next((i for i, token in enumerate(self.tail) if token.word == "FILTER"), None)
        return "" if at is None else self.written(self.tail[at + 3 : -1])

    def written(self, tokens: Sequence[Token]) -> str:
        """Return tokens of it as they stand in the text."""
        return self.query[tokens[0].start : tokens[-1].end] if tokens else ""

    def replaced_by(self, text: str, by: str, construct: str = "{}()") -> Refinement:
        """Return the refinement that puts another text in its place.

        Args:
            text: What is put there.
            by: What it goes by, in SQL.
            construct: What it is called, with `{}` for its name.
        """
        start, end = self.tokens[0].start, (*self.tokens, *self.tail)[-1].end
        by = " ".join(by.replace("`", "").split())
        return Refinement(start, end - start, text, construct.format(self.function), (by,))


def refused_calls(
    query: str, tokens: Sequence[Token], refusals: Sequence[Refusal], ours: Callable[[Refusal], bool]
) -> list[WrittenCall]:
    """Return the calls that are refused, and what repeats them.

    Nothing where another refusal is among them.

    Args:
        query: The text.
        tokens: Its tokens.
        refusals: All that is refused of it.
        ours: Tells refusals of such calls.
    """
    wanted = {(each.place.line, each.place.column) for each in refusals if each.place and ours(each)}
    if len(wanted) < len({each.place for each in refusals}) or not wanted:
        return []
    found = (WrittenCall.at(query, tokens, at) for at in range(len(tokens)))
    calls = [call for call in found if call is not None]
    asked = {call.key for call in calls if call.place in wanted}
    refused = [call for call in calls if call.key in asked]
    return refused if {call.place for call in refused} >= wanted else []


def all_or_none(found: Iterable[Refinement | None]) -> tuple[Refinement, ...]:
    """Return refinements; nothing where one is missing, or stands in another.

    Args:
        found: The refinements, as they follow in the text; None for what cannot be refined.
    """
    added: list[Refinement] = []
    for each in found:
        if each is None or (added and added[-1].at + added[-1].removed > each.at):
            return ()
        added.append(each)
    return tuple(added)


def spaced(text: str) -> str:
    """Return a text with a space before it, if there is one."""
    return f" {text}" if text else ""


def _clause(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the bracket that WITHIN GROUP or FILTER opens here."""
    if at + 2 < len(tokens) and tokens[at].word == "WITHIN" and tokens[at + 2].text == "(":
        return at + 2
    return at + 1 if at + 1 < len(tokens) and tokens[at].word == "FILTER" and tokens[at + 1].text == "(" else None


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index after the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].text in OPENING) - (tokens[at].text in CLOSING)
        if depth == 0:
            return at + 1
    return len(tokens)


def arguments_of(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the arguments of a call."""
    depth = start = 0
    for at, token in enumerate(tokens):
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth == 0 and token.text == ",":
            yield tokens[start:at]
            start = at + 1
    yield tokens[start:]
