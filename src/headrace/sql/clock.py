"""The time of a refresh in a query's text: `current_timestamp()` and its kin.

What they return is read from a relation of one row. So the time is a source like any other: it has versions, a frontier
says which one a table reflects, and FULL, DIFFERENTIAL and `verify` read the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from headrace.errors import Place
from headrace.names import CLOCK, CLOCK_COLUMN
from headrace.sql.reader.refusals import Refusal
from headrace.sql.refinements import Refinement

CLOCK_SQL = f"(SELECT {CLOCK_COLUMN} FROM {CLOCK.sql})"
"""The time of a refresh in a query."""

SOME_TIME = f"(SELECT TIMESTAMP_LTZ '1970-01-01 00:00:00' AS {CLOCK_COLUMN})"
"""The clock where only its column's type is asked for."""

_FUNCTIONS = {
    "now": CLOCK_SQL,
    "current_timestamp": CLOCK_SQL,
    "current_date": f"CAST({CLOCK_SQL} AS DATE)",
    "curdate": f"CAST({CLOCK_SQL} AS DATE)",
    "localtimestamp": f"CAST({CLOCK_SQL} AS TIMESTAMP_NTZ)",
}
_CALL = re.compile(rf"({'|'.join(_FUNCTIONS)})\b(\s*\(\s*\))?", re.IGNORECASE)


def reads_of_time(query: str, refusals: Iterable[Refusal]) -> tuple[Refinement, ...]:
    """Return how a query reads the time of the refresh, where that alone stands in the way.

    Args:
        query: The query.
        refusals: What stands in the way of its maintenance.

    Returns:
        Nothing where something else is refused, too, or a view calls the function.
    """
    found: dict[Place, Refinement] = {}
    for refusal in refusals:
        place = refusal.place
        call = _CALL.match(query, _offset(query, place)) if place is not None else None
        if call is None or place is None or refusal.construct.lower().rstrip("()") != call[1].lower():
            return ()
        found[place] = Refinement(call.start(), len(call[0]), _FUNCTIONS[call[1].lower()], refusal.construct, ())
    return tuple(found.values())


def _offset(query: str, place: Place) -> int:
    lines = query.split("\n")[: place.line - 1]
    return sum(len(line) + 1 for line in lines) + place.column - 1
