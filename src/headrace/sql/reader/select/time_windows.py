"""`window(ts, '5 minutes')`: puts rows into spans of time, one each or several.

Spark makes it a column of the rows that a block selects or groups, called `window`; rows without a time are left out,
and rows in several spans are repeated. So it is read as what gives several rows for one, by Spark's own function, and
stands in a SELECT of its own: nothing is said here about where spans begin. Each block has one time window at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.algebra.relations import Project, Relation
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.resolve import lexemes_of, resolved
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    closing_bracket,
    input_lexeme,
    keys,
    scalar,
    split_arguments,
)
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.syntax.query_shape import Range, Select
from headrace.sql.reader.tables.generators import generated

WINDOW = "window"
"""The function, and what its column is called."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The time window of a block.

    Args:
        relation: The rows of the block beside their windows.
        column: The column of these that holds the window.
        scope: What names mean there.
        function: What puts rows into it, and what the column is called.
    """

    relation: Relation
    column: str
    scope: Scope
    function: str = WINDOW

    def over(self, lexemes: Lexemes) -> Lexemes:
        """Return an expression with the window's column in the place of its calls."""
        out: list[Lexeme] = []
        done = 0
        for start, end in calls_of(lexemes, self.function):
            out += [*lexemes[done:start], input_lexeme(self.column, lexemes[start])]
            done = end
        return (*out, *lexemes[done:])


def time_window(context: Context, select: Select, relation: Relation, scope: Scope) -> TimeWindow | None:
    """Return the time window that a block selects or groups by.

    None where there is none, or one that is not maintained.

    Args:
        context: The text.
        select: The block.
        relation: Its rows, after WHERE.
        scope: What names mean there.
    """
    ranges = [*select.items, *(select.group.items if select.group is not None else ())]
    if not any(token.word == "WINDOW" for within in ranges for token in context.cursor.tokens[within[0] : within[1]]):
        return None
    cut = [lexemes_of(context, within) for within in ranges]
    calls = [
        _resolved(context, lexemes[start:end], scope) for lexemes in cut for start, end in calls_of(lexemes, WINDOW)
    ]
    known = {keys(call): call for call in calls if call is not None}
    if None in calls or len(known) != 1 or scope.knows((WINDOW,)) or (select.group and select.group.extras):
        return None
    (call,) = known.values()
    if not _is_time(context, relation, split_arguments(call[2:-1])[0]):
        return None
    rows, (column,) = generated(relation, call, (WINDOW,))
    beside = scope.beside(Scope((Visible((), WINDOW, column, added=True),), scope.case_sensitive))
    return TimeWindow(rows, column, beside)


def _resolved(context: Context, call: Lexemes, scope: Scope) -> Lexemes | None:
    """Return a call over the columns of FROM; None for spans that are not plain literals."""
    time, *spans = split_arguments(call[2:-1]) or ((),)
    if not 1 <= len(spans) <= 3 or any(len(each) != 1 or each[0].role is not Role.LITERAL for each in spans):
        return None
    time = resolved(context, time, scope)
    return (*call[:2], *time, *call[-2 * len(spans) - 1 :]) if all(p.role is not Role.NAME for p in time) else None


def calls_of(lexemes: Lexemes, function: str) -> Iterator[Range]:
    """Yield where a function such as `window(…)` is called."""
    at = 0
    while at < len(lexemes):
        end = at + 1
        if lexemes[at].role is Role.CALL and lexemes[at].parts[0] == function:
            end = closing_bracket(lexemes, at + 1) + 1
            yield at, end
        at = end


def _is_time(context: Context, relation: Relation, time: Lexemes) -> bool:
    """Return whether a value is a time, as far as is known.

    It may be another window, which Spark knows by a mark that columns lose.
    """
    found = types_in(context, Project(relation, (("time", scalar(time)),)))
    return found is None or found[0].type in ("timestamp", "timestamp_ntz", "date", "string")
