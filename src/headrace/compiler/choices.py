"""Settles aggregates that choose among rows, in the user's own text.

A query becomes a function of its sources so.

`max_by(x, y)` takes x from any of the rows with the greatest y: ordered by `struct(y, x)` it takes the greatest x among
them, FILTER leaving out the rows with y NULL, which it passes over. Of the values of a group `first`, `any_value` take
the least and `last` the greatest, `mode` the least of the most frequent, and lists are sorted: each is one of the
results that the text allows.

Several of them in one SELECT take their values from the same rows, as `first(name), first(email)` do of one customer,
and lists of a group have one order. So where they take different values they are settled together: all rows are ordered
by a struct of these values, of which each takes its field.

Whoever aggregates over a sorted subquery means its order, so that such texts stay. What the new text means is judged by
reading it again; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.compiler.written_calls import CLOSING, OPENING, WrittenCall, closing, refused_calls, spaced
from headrace.reasons import FullReason
from headrace.sql.reader.functions.aggregate_functions import CHOOSING_BY, COLLECTING, JOINING, ORDER_TAKERS
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.syntax.tokens import Token, tokenize, words
from headrace.sql.refinements import Refinement

_LEAST = {
    **dict.fromkeys(words("any_value first first_value"), "min"),
    **dict.fromkeys(words("last last_value"), "max"),
}


_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
"""Words that a subquery begins with."""


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
    settled = [_settled(call, values) for call, values in zip(found, _together(query, tokens, found), strict=True)]
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
            inside.append(after in (*_BEGINNINGS, "("))
        elif token.text in CLOSING and inside:
            inside.pop()
        elif token.word in ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE") and after == "BY" and inside and inside[-1]:
            return True
    return False


def _together(query: str, tokens: Sequence[Token], calls: Sequence[WrittenCall]) -> list[tuple[str, ...]]:
    """Return for each call the values that calls of its SELECT take from their rows.

    Those that are not refused yet, too, as kinds of calls are settled one after the other, by the same row; not what is
    told apart or sorted, which has no order of rows, nor the most frequent value, which is of no row.
    """
    select_of = _selects(tokens)
    taken: dict[int, dict[str, None]] = {}
    for at in range(len(tokens)):
        call = WrittenCall.at(query, tokens, at)
        if call is None or not call.arguments or _is_alone(call):
            continue
        values = taken.setdefault(select_of[tokens[at].start], {})
        if call.value.startswith(_ROW) and (row := WrittenCall.at(query, tokens, at + 2)) is not None:
            values.clear()
            values |= dict.fromkeys(row.arguments[1::2])
        elif not _is_sorted(query, tokens, at):
            values[call.value] = None
    return [() if _is_alone(call) else tuple(taken.get(select_of[call.tokens[0].start], ())) for call in calls]


_OF_ROWS = (CHOOSING_BY | _LEAST.keys() | COLLECTING | JOINING) - {"collect_set"}

_ROW = "named_struct('v0', "
"""Begins a row of all values that calls of a SELECT take."""


def _is_alone(call: WrittenCall) -> bool:
    return call.function not in _OF_ROWS or call.quantifier.upper() == "DISTINCT"


def _is_sorted(query: str, tokens: Sequence[Token], at: int) -> bool:
    """Return whether a call stands in a function that gives the same whatever its order is."""
    call, around = (WrittenCall.at(query, tokens, each) for each in (at, max(at - 2, 0)))
    if call is None or around is None or around.function not in ORDER_TAKERS or tokens[at - 1].text != "(":
        return False
    least, most = ORDER_TAKERS[around.function]  # with more, `array_sort` orders by a function, which leaves ties
    arguments = around.arguments
    return arguments[0] == call.written((*call.tokens, *call.tail)) and least <= len(arguments) <= most


def _selects(tokens: Sequence[Token]) -> dict[int, int]:
    """Return for the place of each token the number of the SELECT that it belongs to."""
    numbers, stack, last = dict[int, int](), [0], 0
    for at, token in enumerate(tokens):
        if token.text in OPENING:
            after = tokens[at + 1].word if at + 1 < len(tokens) else ""
            inner = after in _BEGINNINGS
            last += inner
            stack.append(last if inner else stack[-1])
        elif token.text in CLOSING and len(stack) > 1:
            stack.pop()
        elif token.word in _SET_OPERATIONS and _combines(tokens, at):
            last += 1
            stack[-1] = last
        numbers[token.start] = stack[-1]
    return numbers


_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


def _combines(tokens: Sequence[Token], at: int) -> bool:
    """Return whether such a word combines queries.

    It may be a name, and `* EXCEPT (…)` leaves out columns.
    """
    follows = tokens[at + 1] if at + 1 < len(tokens) else tokens[at]
    return tokens[at - 1].text != "*" and (follows.word in ("ALL", "DISTINCT", *_BEGINNINGS) or follows.text == "(")


def _settled(call: WrittenCall, values: tuple[str, ...]) -> Refinement | None:
    """Return a call with nothing left to choose; None where that is not possible.

    Args:
        call: The call.
        values: The values that calls of its SELECT take from the rows.
    """
    arguments, name, tail = call.arguments, call.tokens[0].text, call.written(call.tail)
    if not arguments or not all(arguments):
        return None
    first, by = call.value, arguments[-1]
    apart = len(values) < 2 or call.value not in values
    if call.function in CHOOSING_BY and len(arguments) == 2:
        if by.lower().startswith("struct("):
            return None
        order = ", ".join((by, first) if apart else (by, *values))
        new = f"{name}({first}, struct({order})){_filter(call, f'({by}) IS NOT NULL')}"
        return call.replaced_by(new, first if apart else ", ".join(values))
    if call.function in JOINING:
        return _texts_ordered(call, tail, () if apart else values)
    if not apart:
        return _field_of_row(call, values)
    if call.function in _LEAST:
        return call.replaced_by(f"{_LEAST[call.function]}({first}){spaced(tail)}", first)
    if call.function in COLLECTING:
        return call.replaced_by(f"sort_array({name}({first}){spaced(tail)})", first)
    if call.function == "mode" and len(arguments) == 1 and not call.has("WITHIN"):
        return call.replaced_by(f"{name}({first}, true){spaced(tail)}", first)
    return None


def _field_of_row(call: WrittenCall, values: tuple[str, ...]) -> Refinement | None:
    """Return a call that takes its value from rows in the order of all values.

    None where that is not possible.
    """
    fields = ", ".join(f"'v{number}', {value}" for number, value in enumerate(values))
    row, field, by = f"named_struct({fields})", f"v{values.index(call.value)}", ", ".join(values)
    if call.function in COLLECTING:
        rows = f"collect_list({row}){_filter(call, f'({call.value}) IS NOT NULL')}"
        return call.replaced_by(f"transform(sort_array({rows}), r -> r.{field})", by)
    passes_over_null = [each.lower() for each in call.arguments[1:]]
    if passes_over_null not in ([], ["true"], ["false"]):
        return None
    kept = f"({call.value}) IS NOT NULL" if passes_over_null == ["true"] else ""
    return call.replaced_by(f"({_LEAST[call.function]}({row}){_filter(call, kept)}).{field}", by)


def _filter(call: WrittenCall, also: str) -> str:
    """Return the FILTER of a call with a further condition."""
    condition = call.filter()
    both = " AND ".join(filter(None, (f"({condition})" if condition and also else condition, also)))
    return f" FILTER (WHERE {both})" if both else ""


def _texts_ordered(call: WrittenCall, tail: str, values: tuple[str, ...]) -> Refinement:
    text, value = call.written(call.tokens), ", ".join(values) or call.value
    if not call.has("WITHIN"):
        return call.replaced_by(f"{text} WITHIN GROUP (ORDER BY {value}){spaced(tail)}", value)
    end = closing(call.tail, 2) - 1
    inside, rest = call.written(call.tail[:end]), call.written(call.tail[end:])
    return call.replaced_by(f"{text} {inside}, {value}{rest}", value)
