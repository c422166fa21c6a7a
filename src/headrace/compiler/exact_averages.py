"""Has averages of 64-bit integers added up exactly, in the user's own text.

Spark adds such values up as floats. Sums beyond 53 bits depend on the order of addition then, which is not fixed: what
a refresh computes again may not equal what is stored. A sum of decimals divided by the count is a function of the rows.
It is written below other operators only: at the top nothing is computed a second time.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.relations import AggregateCall
from headrace.compiler.inexact_values import AVERAGES
from headrace.compiler.written_calls import WrittenCall, all_or_none, refused_calls, spaced
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.sql.refinements import LONG_INTEGERS, Refinement


def exact_averages(query: str, averages: Sequence[AggregateCall]) -> tuple[Refinement, ...]:
    """Return what is written into a query so that averages are functions of the rows.

    Nothing where one of them cannot be written so.

    Args:
        query: The user's text.
        averages: The averages, with their places.
    """
    asked = [not_maintained(each.function, each.place) for each in averages]
    places = {(each.place.line, each.place.column) for each in averages if each.place}
    # one that is spelt alike may be over a column of another type
    calls = [call for call in refused_calls(query, tokenize(query), asked, lambda _: True) if call.place in places]
    return all_or_none(_exact(call) for call in calls)


def _exact(call: WrittenCall) -> Refinement | None:
    if call.function not in AVERAGES or len(call.arguments) != 1:
        return None
    first, _, rest = call.arguments[0].partition(" ")
    quantified = rest and first.upper() in ("DISTINCT", "ALL")
    each, value = (f"{first} ", rest.strip()) if quantified else ("", call.arguments[0])
    tail = spaced(call.written(call.tail))
    total = f"CAST(sum({each}CAST({value} AS DECIMAL(20,0))){tail} AS DOUBLE)"
    return call.replaced_by(f"({total} / nullif(count({each}{value}){tail}, 0))", value, "{}()" + LONG_INTEGERS)
