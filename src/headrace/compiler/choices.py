"""Settles aggregates that choose among rows, in the user's own text.

A query becomes a function of its sources so.

`max_by(x, y)` takes x from any of the rows with the greatest y: ordered by `struct(y, x)` it takes the greatest x among
them, FILTER leaving out the rows with y NULL, which it passes over. Of the values of a group `first`, `any_value` take
the least and `last` the greatest, `mode` the least of the most frequent, and lists are sorted: each is one of the
results that the text allows. Whoever aggregates over a sorted subquery means its order, so that such texts stay. What
the new text means is judged by reading it again; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.errors import place_at
from headrace.reasons import FullReason
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.syntax.tokens import Token, tokenize, words
from headrace.sql.refinements import Refinement

_BY = words("max_by min_by")
_LEAST = {
    **dict.fromkeys(words("any_value first first_value"), "min"),
    **dict.fromkeys(words("last last_value"), "max"),
}
_LISTS = words("array_agg collect_list collect_set")
_TEXTS = words("listagg string_agg")
_OPENING, _CLOSING = ("(", "["), (")", "]")


def settled_choices(query: str, refusals: Sequence[Refusal], views: Iterable[str]) -> tuple[Refinement, ...]:
    """Return what is written into a query so that no aggregate chooses among rows.

    Nothing where one of them, or anything else, is refused for another reason.

    Args:
        query: The user's text.
        refusals: All that is refused of it.
        views: The texts of the views that it reads.
    """
    wanted = {(each.place.line, each.place.column): each for each in refusals if each.place and _chooses(each)}
    if len(wanted) < len({each.place for each in refusals}) or not wanted:
        return ()
    tokens = tokenize(query)
    calls = [call for at in range(len(tokens)) if (call := _Call.at(query, tokens, at)) is not None]
    asked = {call.key for call in calls if _place(query, call) in wanted}
    found = [call for call in calls if call.key in asked]
    if len({_place(query, call) for call in found} & wanted.keys()) < len(wanted):
        return ()
    goes_by_order = any(call.function not in _BY and call.function != "mode" for call in found)
    if goes_by_order and (_sorts(tokens) or any(_sorts(tokenize(f"({text})")) for text in views)):
        return ()
    refined = [call.refined() for call in found]
    return tuple(each for each in refined if each is not None) if all(refined) else ()


def by_equality(refinements: Iterable[Refinement]) -> bool:
    """Return whether choices go by equality, which texts with a collation leave open."""
    return any(each.construct not in ("max_by()", "min_by()") for each in refinements)


def _chooses(refusal: Refusal) -> bool:
    known = _BY | _LEAST.keys() | _LISTS | _TEXTS | {"mode"}
    open_ = refusal.code == FullReason.NOT_DETERMINISTIC or refusal.construct == "collect_set()"
    return open_ and refusal.construct.removesuffix("()") in known


def _place(query: str, call: _Call) -> tuple[int, int]:
    place = place_at(query, call.tokens[0].start)
    return place.line, place.column


def _sorts(tokens: Sequence[Token]) -> bool:
    """Return whether a subquery sorts its rows."""
    inside: list[bool] = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1].word if at + 1 < len(tokens) else ""
        if token.text in _OPENING:
            inside.append(after in ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "("))
        elif token.text in _CLOSING and inside:
            inside.pop()
        elif token.word in ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE") and after == "BY" and inside and inside[-1]:
            return True
    return False


class _Call:
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
    def at(cls, query: str, tokens: Sequence[Token], at: int) -> _Call | None:
        """Return the call whose name is a token.

        None where it is no name of a call, or that of a window function.
        """
        if at + 1 >= len(tokens) or not tokens[at].is_name or tokens[at + 1].text != "(":
            return None
        end = stop = _closing(tokens, at + 1)
        while (opening := _clause(tokens, stop)) is not None:
            stop = _closing(tokens, opening)
        after = tokens[stop].word if stop < len(tokens) else ""
        return None if after in ("OVER", "IGNORE", "RESPECT") else cls(query, tokens[at:end], tokens[end:stop])

    def refined(self) -> Refinement | None:
        """Return it with nothing left to choose; None where that is not possible."""
        arguments = [self._text(each) for each in _split(self.tokens[2:-1])]
        name, tail = self.tokens[0].text, self._text(self.tail)
        if not arguments or not all(arguments):
            return None
        first, by = arguments[0], arguments[-1]
        if self.function in _BY and len(arguments) == 2:
            if by.lower().startswith("struct("):
                return None
            condition = self._filter()
            also = f"({condition}) AND " if condition else ""
            new = f"{name}({first}, struct({by}, {first})) FILTER (WHERE {also}({by}) IS NOT NULL)"
            return self._refinement(new, first)
        if self.function in _LEAST:
            return self._refinement(f"{_LEAST[self.function]}({first}){_spaced(tail)}", first)
        if self.function in _LISTS:
            return self._refinement(f"sort_array({name}({first}){_spaced(tail)})", first)
        if self.function == "mode" and len(arguments) == 1 and not self._has("WITHIN"):
            return self._refinement(f"{name}({first}, true){_spaced(tail)}", first)
        return self._texts_ordered(first, tail) if self.function in _TEXTS else None

    def _texts_ordered(self, first: str, tail: str) -> Refinement | None:
        call, plain = self._text(self.tokens), first.split(maxsplit=1)
        value = plain[1] if plain[0].upper() == "DISTINCT" and len(plain) > 1 else first
        if not self._has("WITHIN"):
            return self._refinement(f"{call} WITHIN GROUP (ORDER BY {value}){_spaced(tail)}", value)
        end = _closing(self.tail, 2) - 1
        inside, rest = self._text(self.tail[:end]), self._text(self.tail[end:])
        return self._refinement(f"{call} {inside}, {value}{rest}", value)

    def _has(self, word: str) -> bool:
        return any(token.word == word for token in self.tail[:1])

    def _filter(self) -> str:
        """Return the condition of FILTER; nothing without one."""
        at = next((i for i, token in enumerate(self.tail) if token.word == "FILTER"), None)
        return "" if at is None else self._text(self.tail[at + 3 : -1])

    def _text(self, tokens: Sequence[Token]) -> str:
        return self.query[tokens[0].start : tokens[-1].end] if tokens else ""

    def _refinement(self, text: str, by: str) -> Refinement:
        start, end = self.tokens[0].start, (*self.tokens, *self.tail)[-1].end
        return Refinement(start, end - start, text, f"{self.function}()", (" ".join(by.replace("`", "").split()),))


def _spaced(text: str) -> str:
    return f" {text}" if text else ""


def _clause(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the bracket that WITHIN GROUP or FILTER opens here."""
    if at + 2 < len(tokens) and tokens[at].word == "WITHIN" and tokens[at + 2].text == "(":
        return at + 2
    return at + 1 if at + 1 < len(tokens) and tokens[at].word == "FILTER" and tokens[at + 1].text == "(" else None


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index after the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].text in _OPENING) - (tokens[at].text in _CLOSING)
        if depth == 0:
            return at + 1
    return len(tokens)


def _split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the arguments of a call."""
    depth = start = 0
    for at, token in enumerate(tokens):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and token.text == ",":
            yield tokens[start:at]
            start = at + 1
    yield tokens[start:]
