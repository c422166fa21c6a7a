"""Has averages of integers added up exactly, in the user's own text.

Spark adds such values up as floats. Sums beyond 53 bits depend on the order of addition then, which is not fixed: what
a refresh computes again may not equal what is stored. A whole sum divided by the count is a function of the rows: of
64-bit integers a sum of decimals, of those of 32 bits a sum of 64, which billions of them fit. It is written below
other operators only: at the top nothing is computed a second time.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.relations import AggregateCall
from headrace.compiler.inexact_values import AVERAGES, LONG
from headrace.compiler.written_calls import WrittenCall, all_or_none, spaced
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.sql.refinements import INTEGERS, LONG_INTEGERS, Refinement


def exact_averages(query: str, averages: Sequence[AggregateCall]) -> tuple[Refinement, ...]:
    """Return what is written into a query so that averages are functions of the rows.

    Those that stand in the text of a view, or are written otherwise than as a call of one value, stay as they are.

    Args:
        query: The user's text.
        averages: The averages, with their places.
    """
    # one that is spelt alike may be over a column of another type
    types = {(each.place.line, each.place.column): each.argument_type or "" for each in averages if each.place}
    tokens = tokenize(query)
    calls = filter(None, (WrittenCall.at(query, tokens, at) for at in range(len(tokens))))
    written = (_exact(call, types[call.place]) for call in calls if call.place in types)
    return all_or_none(filter(None, written))


def _exact(call: WrittenCall, type_: str) -> Refinement | None:
    value = call.value
    if call.function not in AVERAGES or not value or len(call.arguments) != 1:
        return None
    quantifier, tail = call.quantifier and f"{call.quantifier} ", spaced(call.written(call.tail))
    long = type_.lower() in LONG
    summed = f"CAST({value} AS DECIMAL(20,0))" if long else value
    total = f"CAST(sum({quantifier}{summed}){tail} AS DOUBLE)"
    text = f"({total} / nullif(count({quantifier}{value}){tail}, 0))"
    return call.replaced_by(text, value, "{}()" + (LONG_INTEGERS if long else INTEGERS))
