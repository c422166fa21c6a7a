"""Reasons why a query, or a part of it, is not maintained incrementally."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import Place
from headrace.reasons import FullReason


@dataclass(frozen=True, slots=True)
class Refusal:
    """One construct that stands in the way of DIFFERENTIAL.

    Args:
        code: OPERATOR_NOT_MAINTAINED or NOT_DETERMINISTIC.
        construct: Its name in SQL words, such as `LEFT JOIN`.
        message: One sentence.
        place: Where it stands in the user's text.
        hint: What to write instead, where there is such a thing.
    """

    code: FullReason
    construct: str
    message: str
    place: Place | None = None
    hint: str | None = None


SESSION = "session_window()"
"""The construct's name in refusals; marks the window functions that it is maintained by."""

HINTS: dict[str, str] = {
    "LIMIT": "Read the stream table with a LIMIT instead.",
    "OFFSET": "Read the stream table with an OFFSET instead.",
    "subquery in an expression": "A join often says the same: FROM … JOIN (SELECT …).",
    "EXISTS": "Make it a column of a derived table, and read that here.",
    "IN (subquery)": "It is maintained as a condition: write CASE WHEN x IN (…) THEN … END, which settles NULL.",
    "LATERAL": "Read outer columns in WHERE only, or join a derived table that is grouped by the key.",
    "LATERAL VIEW": "Use explode, posexplode, inline, stack or json_tuple, and name the columns.",
    **dict.fromkeys(
        ("any_value()", "first()", "first_value()", "last()", "last_value()"),
        "Take min(x) or max(x), or max_by(x, struct(y, x)) for the x of the greatest y.",
    ),
    **dict.fromkeys(("max_by()", "min_by()"), "Compare by a struct that ends with x: max_by(x, struct(y, x))."),
    **dict.fromkeys(("listagg()", "string_agg()"), "Order by x, at least last: WITHIN GROUP (ORDER BY y, x)."),
    **dict.fromkeys(("array_agg()", "collect_list()"), "Put the array in order at once: sort_array(collect_list(x))."),
    "collect_set()": "Put the array in order at once: sort_array(collect_set(x)).",
    "mode()": "mode(x, true) and mode() WITHIN GROUP (ORDER BY x) take the least of equally frequent values.",
    **dict.fromkeys(("approx_percentile()", "percentile_approx()"), "percentile(x, p) is exact and maintained."),
    **dict.fromkeys(("try_avg()", "try_sum()"), "Sum a type with room: try_sum(CAST(x AS DECIMAL(20,0)))."),
    "PIVOT": "Pivot columns of integers, strings, dates or truth values, by plain constants, "
    "with aggregates that are maintained in GROUP BY.",
    **dict.fromkeys(
        ("window()", "window_time()"),
        "It is maintained as a select item or a grouping expression of a time, one a block: "
        "FROM (SELECT *, window(t, '10 minutes') AS w FROM …).",
    ),
    SESSION: "It is maintained as a grouping expression of a time: GROUP BY k, session_window(t, '5 minutes').",
    "TABLESAMPLE": "Filter by a hash of a key instead: WHERE pmod(xxhash64(key), 10) = 0.",
}
"""Hints about constructs, by name."""

REMEDIES: dict[str, str] = {
    "depends on when it runs": "It is maintained in conditions of WHERE, in a subquery where need be: "
    "FROM (SELECT … WHERE ts > now() - INTERVAL 1 DAY). Or let it be FULL on a schedule: SCHEDULE '1 day' REFRESH MODE "
    "FULL.",
    "gives another result each time it runs": "Derive it from the row, as xxhash64(key) does, or have it written with "
    "the source.",
    "depends on the session that runs it": "Write its value instead.",
}
"""Hints about what is no function of the sources, by the reason."""


def not_maintained(construct: str, place: Place | None, message: str | None = None, hint: str | None = None) -> Refusal:
    """Return the refusal of a construct that Headrace does not maintain."""
    sentence = message or f"{construct} is not maintained incrementally."
    return Refusal(FullReason.OPERATOR_NOT_MAINTAINED, construct, sentence, place, hint or HINTS.get(construct))


def not_deterministic(construct: str, place: Place | None, why: str, hint: str | None = None) -> Refusal:
    """Return the refusal of something that is not a function of the sources."""
    message = f"{construct} {why}, so the result is not a function of the sources."
    hint = hint or HINTS.get(construct) or REMEDIES.get(why)
    return Refusal(FullReason.NOT_DETERMINISTIC, construct, message, place, hint)
