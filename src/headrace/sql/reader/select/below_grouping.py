"""Subqueries in aggregate calls and grouping expressions, evaluated below the grouping.

Their values become columns of the rows that are grouped; where a select item repeats a grouping expression, it repeats
the columns, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.algebra.relations import Relation
from headrace.sql.reader.functions.builtin_functions import AGGREGATES
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role
from headrace.sql.reader.scalars.matching import match_at
from headrace.sql.reader.select.aggregates import call_at
from headrace.sql.reader.syntax.query_shape import Range

Valued = Callable[[list[Lexemes]], tuple[Relation, list[Lexemes]]]
"""Rows with columns for the subqueries of some expressions, and the expressions over them."""


def put_below(
    keys: Sequence[Lexemes], items: Sequence[Lexemes], valued: Valued
) -> tuple[Relation, list[Lexemes], list[Lexemes]] | None:
    """Return the rows to group, the grouping expressions and the other expressions over them.

    None where nothing is to do.

    Args:
        keys: The grouping expressions.
        items: Expressions over the groups.
        valued: Gives the rows columns.
    """
    asking = [key for key in keys if has_subquery(key)]
    parts = [*asking]
    places: list[tuple[int, Range, int]] = []
    for number, item in enumerate(items):
        for start, end, key in _below(item, asking):
            places.append((number, (start, end), len(parts) if key is None else key))
            parts += [item[start:end]] if key is None else []
    if not parts:
        return None
    relation, over = valued(parts)
    known = dict(zip(map(id, asking), over, strict=False))
    return (
        relation,
        [known.get(id(key), key) for key in keys],
        [_with(item, [(at, over[part]) for i, at, part in places if i == number]) for number, item in enumerate(items)],
    )


def _below(item: Lexemes, asking: Sequence[Lexemes]) -> list[tuple[int, int, int | None]]:
    """Return the parts of an expression that hold subqueries below the grouping.

    Of a grouping expression, its number.
    """
    found: list[tuple[int, int, int | None]] = []
    at = 0
    while at < len(item):
        end, key = at + 1, next((i for i, each in enumerate(asking) if match_at(item, at, each)), None)
        if key is not None:
            end = at + len(asking[key])
            found.append((at, end, key))
        elif item[at].role is Role.CALL and item[at].parts[0] in AGGREGATES:
            end = call_at(item, at).end
            if has_subquery(item[at:end]):
                found.append((at, end, None))
        at = end
    return found


def _with(item: Lexemes, replacements: Sequence[tuple[Range, Lexemes]]) -> Lexemes:
    out: list[Lexeme] = []
    done = 0
    for (start, end), lexemes in replacements:
        out += [*item[done:start], *lexemes]
        done = end
    return (*out, *item[done:])
