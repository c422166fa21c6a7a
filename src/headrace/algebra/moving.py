"""Moving filters: conditions that compare with the time of the refresh.

`ts > current_timestamp() - INTERVAL 7 DAYS` is read as the rows that have a partner in the clock, a relation of one
row. What is a source in this way has versions, and the operators above need not know of it.
"""

from __future__ import annotations

from headrace.algebra.relations import Existence, Moment, Relation, Scan
from headrace.algebra.scalar import Scalar
from headrace.algebra.words import Kind
from headrace.names import CLOCK, CLOCK_COLUMN, NOW


def moving_filter(rows: Relation, condition: Scalar) -> Existence:
    """Return the rows for which a condition over them and NOW is true."""
    return Existence(rows, clock(), condition)


def clock(moment: Moment = Moment.AFTER) -> Scan:
    """Return the clock."""
    return Scan(CLOCK, ((NOW, CLOCK_COLUMN),), moment)


def is_moving(relation: Relation) -> bool:
    """Return whether a relation is a moving filter."""
    return isinstance(relation, Existence) and is_clock(relation.right)


def is_clock(relation: Relation) -> bool:
    """Return whether a relation is the clock, before or after a change."""
    return isinstance(relation, Scan) and relation.source == CLOCK and relation.columns == (NOW,)


def fails_with_its_opposite(condition: Scalar) -> bool:
    """Return whether, once true, a condition is never NULL at another time.

    So it is for comparisons of something that does not read the time with something that the time alone decides: NULL
    comes from the row alone then. Its opposite is `NOT (…)`, which sources can look up by their files' statistics.
    """
    at = [i for i, word in enumerate(condition.words) if word.kind is Kind.OPERATOR and word.name in _COMPARISONS]
    if len(at) != 1:
        return False
    sides = condition.words[: at[0]], condition.words[at[0] + 1 :]
    by_time = [any(word.kind is Kind.COLUMN and word.name == NOW for word in side) for side in sides]
    if by_time[0] == by_time[1]:
        return False
    timed = sides[by_time.index(True)]
    plain = all(w.name in _NEVER_NULL for w in timed if w.kind is Kind.FUNCTION)
    words = {w.name for w in condition.words if w.kind is Kind.OPERATOR}
    alone = all(w.name == NOW for w in timed if w.kind is Kind.COLUMN)
    return plain and alone and words <= _ALLOWED


_COMPARISONS = frozenset({"<", "<=", ">", ">=", "=", "=="})
_ALLOWED = _COMPARISONS | {"(", ")", ",", "+", "-", "AS"}
_NEVER_NULL = frozenset(
    {"cast", "date_add", "date_sub", "dateadd", "timestampadd", "add_months", "date_trunc", "trunc"}
)
