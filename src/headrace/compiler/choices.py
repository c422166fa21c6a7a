"""Settles aggregates that choose among rows, in the user's own text.

A query becomes a function of its sources so.

`max_by(x, y)` takes x from any of the rows with the greatest y: ordered by `struct(y, x)` it takes the greatest x among
them, FILTER leaving out the rows with y NULL, which it passes over. Of the values of a group `first`, `any_value` take
the least and `last` the greatest, `mode` the least of the most frequent, and lists are sorted: each is one of the
results that the text allows. Whoever aggregates over a sorted subquery means its order, so that such texts stay. What
the new text means is judged by reading it again; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.compiler.written_calls import CLOSING, OPENING, WrittenCall, closing, refused_calls, spaced
from headrace.reasons import FullReason
from headrace.sql.reader.functions.aggregate_functions import CHOOSING_BY, COLLECTING, JOINING
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.syntax.tokens import Token, tokenize, words
from headrace.sql.refinements import Refinement

_LEAST = {
    **dict.fromkeys(words("any_value first first_value"), "min"),
    **dict.fromkeys(words("last last_value"), "max"),
}


def settled_choices(query: str, refusals: Sequence[Refusal], views: Iterable[str]) -> tuple[Refinement, ...]:
    """Return what is written into a query so that no aggregate chooses among rows.

    Nothing where one of them, or anything else, is refused for another reason.

    Args:
        query: The user's text.
        refusals: All that is refused of it.
        views: The texts of the views that it reads.
    """
    tokens = tokenize(query)
    found = refused_calls(query, tokens, refusals, _chooses)
    goes_by_order = any(call.function not in CHOOSING_BY and call.function != "mode" for call in found)
    if goes_by_order and (_sorts(tokens) or any(_sorts(tokenize(f"({text})")) for text in views)):
        return ()
    settled = [_settled(call) for call in found]
    return tuple(each for each in settled if each is not None) if all(settled) else ()


def by_equality(refinements: Iterable[Refinement]) -> bool:
    """Return whether choices go by equality, which texts with a collation leave open."""
    return any(each.construct not in ("max_by()", "min_by()") for each in refinements)


def _chooses(refusal: Refusal) -> bool:
    known = CHOOSING_BY | _LEAST.keys() | COLLECTING | JOINING | {"mode"}
    open_ = refusal.code == FullReason.NOT_DETERMINISTIC or refusal.construct == "collect_set()"
    return open_ and refusal.construct.removesuffix("()") in known


def _sorts(tokens: Sequence[Token]) -> bool:
    """Return whether a subquery sorts its rows."""
    inside: list[bool] = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1].word if at + 1 < len(tokens) else ""
        if token.text in OPENING:
            inside.append(after in ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "("))
        elif token.text in CLOSING and inside:
            inside.pop()
        elif token.word in ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE") and after == "BY" and inside and inside[-1]:
            return True
    return False


def _settled(call: WrittenCall) -> Refinement | None:
    """Return a call with nothing left to choose; None where that is not possible."""
    arguments, name, tail = call.arguments, call.tokens[0].text, call.written(call.tail)
    if not arguments or not all(arguments):
        return None
    first, by = arguments[0], arguments[-1]
    if call.function in CHOOSING_BY and len(arguments) == 2:
        if by.lower().startswith("struct("):
            return None
        condition = call.filter()
        also = f"({condition}) AND " if condition else ""
        new = f"{name}({first}, struct({by}, {first})) FILTER (WHERE {also}({by}) IS NOT NULL)"
        return call.replaced_by(new, first)
    if call.function in _LEAST:
        return call.replaced_by(f"{_LEAST[call.function]}({first}){spaced(tail)}", first)
    if call.function in COLLECTING:
        return call.replaced_by(f"sort_array({name}({first}){spaced(tail)})", first)
    if call.function == "mode" and len(arguments) == 1 and not call.has("WITHIN"):
        return call.replaced_by(f"{name}({first}, true){spaced(tail)}", first)
    return _texts_ordered(call, first, tail) if call.function in JOINING else None


def _texts_ordered(call: WrittenCall, first: str, tail: str) -> Refinement:
    text, plain = call.written(call.tokens), first.split(maxsplit=1)
    value = plain[1] if plain[0].upper() == "DISTINCT" and len(plain) > 1 else first
    if not call.has("WITHIN"):
        return call.replaced_by(f"{text} WITHIN GROUP (ORDER BY {value}){spaced(tail)}", value)
    end = closing(call.tail, 2) - 1
    inside, rest = call.written(call.tail[:end]), call.written(call.tail[end:])
    return call.replaced_by(f"{text} {inside}, {value}{rest}", value)
