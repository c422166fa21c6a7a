"""`GROUP BY session_window(ts, '5 minutes')`: rows of a group with small gaps between them.

Each row gives a span of its own, from its time to its time plus the gap, and spans of a group that touch are one
session. Spark merges them while it groups. Here they are merged before, by window functions over the other grouping
expressions, so that a session is a struct to group by like any other: a row begins a session where all earlier ends lie
before it, and ends one where the next time lies behind all ends so far. Frames go by values, so ties do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.algebra.relations import AggregateCall, Filter, Project, Relation, SortKey, Window, WindowCall
from headrace.algebra.scalar import NULL, Scalar, call_of, cast, column, compose, text_literal
from headrace.algebra.tree import identity
from headrace.errors import Place
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, resolved
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.refusals import SESSION, Refusal, not_maintained
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, keys, scalar, split_arguments
from headrace.sql.reader.select.aggregates import call_at, has_aggregate
from headrace.sql.reader.select.time_windows import TimeWindow, calls_of
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.syntax.query_shape import Select

_FUNCTION = "session_window"

_BEFORE = "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 MICROSECOND PRECEDING"
_BEHIND = "RANGE BETWEEN INTERVAL 1 MICROSECOND FOLLOWING AND UNBOUNDED FOLLOWING"
_FROM_HERE = "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"

_UNIT = "(?:year|month|week|day|hour|minute|second|millisecond|microsecond)s?"
_GAP = re.compile(rf"\s*(?:interval\s+)?(?:[+-]?\s*\d+(?:\.\d+)?\s+{_UNIT}\s*)+", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?)\s*(\d+(?:\.\d+)?)")

_COUNTED_AGAIN = (
    "Spark may count a value of a session several times where aggregates take DISTINCT values of several expressions, "
    "or with FILTER."
)
_APART = "Count them in stream tables of their own."


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The session window of a grouped block.

    Args:
        span: Its column, before the rows have it, and what names mean beside it.
        start: The time of a row.
        end: The end of a row's own span.
        place: Where it stands in the text.
    """

    span: TimeWindow
    start: Scalar
    end: Scalar
    place: Place

    def rows(self, context: Context, relation: Relation, grouped: Sequence[Lexemes]) -> Relation:
        """Return the rows beside their sessions, without those that are in none.

        Args:
            context: Where refusals go.
            relation: The rows.
            grouped: What they are grouped by, over their columns and that of the session.
        """
        others = [each for each in grouped if not self._is(each)]
        if len(others) == len(grouped) or any(self._read_by(each) for each in others):
            context.refuse(_outside(self.place))
            return relation
        names = Names()
        for name in (*relation.columns, self.span.column):
            names.take(name)
        partition = {keys(each): (names.take("partition"), scalar(each)) for each in others}
        at = {keys(each): each[0].parts[0] for each in others if len(each) == 1 and each[0].role is Role.INPUT}
        computed = tuple(item for key, item in partition.items() if key not in at)
        by = tuple(dict.fromkeys(at.get(key, name) for key, (name, _) in partition.items()))
        start, end = names.take("session.start"), names.take("session.end")
        every = Project(relation, (*identity(relation.columns), *computed, (start, self.start), (end, self.end)))
        ours = Filter(every, compose("{end} > {start}", start=column(start), end=column(end)))
        first, last = names.take("session.first"), names.take("session.last")
        merged = self._merged(ours, by, names, (start, end, first, last))
        bounds = (text_literal("start"), column(first), text_literal("end"), column(last))
        return Project(merged, (*identity(relation.columns), (self.span.column, call_of("named_struct", *bounds))))

    def _merged(self, rows: Relation, by: tuple[str, ...], names: Names, known: tuple[str, str, str, str]) -> Relation:
        """Return the rows beside the first and last moment of their sessions."""
        start, end, first, last = known
        before, behind, so_far = (names.take(f"session.{each}") for each in ("before", "behind", "so_far"))
        edges = (
            self._call(before, "max", "{a}", start, _BEFORE, a=end),
            self._call(behind, "min", "{a}", start, _BEHIND, a=start),
            self._call(so_far, "max", "{a}", start, "", a=end),
        )
        begins, ends = "CASE WHEN {a} <= {b} THEN NULL ELSE {a} END", "CASE WHEN {a} <= {b} THEN NULL ELSE {b} END"
        whole = (
            self._call(first, "max", begins, start, "", a=start, b=before),
            self._call(last, "min", ends, start, _FROM_HERE, a=behind, b=so_far),
        )
        return Window(Window(rows, by, edges), by, whole)

    def _call(self, name: str, function: str, value: str, order: str, frame: str, **columns: str) -> WindowCall:
        argument = compose(value, **{part: column(each) for part, each in columns.items()})
        by = (SortKey(column(order)),)
        return WindowCall(name, function, call_of(function, argument), by, frame, self.place, SESSION)

    def check_read(self, context: Context, lexemes: Lexemes) -> None:
        """Refuse an aggregate that reads the session, which Spark has not merged there yet."""
        calls = (at for at in range(len(lexemes)) if has_aggregate(lexemes[at : at + 1]))
        if any(self._read_by(lexemes[at : call_at(lexemes, at).end]) for at in calls):
            context.refuse(_outside(self.place))

    def check_calls(self, context: Context, calls: Sequence[AggregateCall]) -> None:
        """Refuse aggregates for which Spark groups by their values, too, before it merges.

        It counts a value again in each part of a session that only rows of other values hold together.
        """
        distinct = [call for call in calls if call.distinct]
        if len({(call.argument, call.more) for call in distinct}) > 1 or any(call.filter for call in distinct):
            context.refuse(not_maintained(SESSION, self.place, _COUNTED_AGAIN, _APART))

    def _is(self, lexemes: Lexemes) -> bool:
        return len(lexemes) == 1 and self._read_by(lexemes)

    def _read_by(self, lexemes: Lexemes) -> bool:
        return any(each.role is Role.INPUT and each.parts[0] == self.span.column for each in lexemes)


def session_window(context: Context, select: Select, relation: Relation, scope: Scope) -> SessionWindow | None:
    """Return the session window that a block groups by.

    None where there is none. What of it is not maintained is taken down.

    Args:
        context: The text.
        select: The block.
        relation: Its rows, after WHERE.
        scope: What names mean there.
    """
    ranges = [*select.items, *(select.group.items if select.group is not None else ())]
    named = _FUNCTION.upper()
    if not any(token.word == named for within in ranges for token in context.cursor.tokens[within[0] : within[1]]):
        return None
    cut = [lexemes_of(context, within) for within in ranges]
    calls = [lexemes[start:end] for lexemes in cut for start, end in calls_of(lexemes, _FUNCTION)]
    if not calls:
        return None
    place = context.place_of(calls[0][0].at)
    if select.group is None or select.group.extras or scope.knows((_FUNCTION,)):
        context.refuse(_outside(place))
    found = {keys(call): call for call in (_resolved(context, call, scope) for call in calls)}
    (first, *others) = found.values()
    if others:
        context.refuse(not_maintained(SESSION, place, "Several windows of time in one SELECT are not maintained."))
    names = Names()
    for name in relation.columns:
        names.take(name)
    own = names.take(_FUNCTION)
    beside = scope.beside(Scope((Visible((), _FUNCTION, own, added=True),), scope.case_sensitive))
    start, end = _bounds(context, relation, first, place)
    return SessionWindow(TimeWindow(relation, own, beside, _FUNCTION), start, end, place)


def _bounds(context: Context, relation: Relation, call: Lexemes, place: Place) -> tuple[Scalar, Scalar]:
    """Return where a row's own span begins and ends; anything where that is refused."""
    arguments = split_arguments(call[2:-1])
    if any(each.role is Role.NAME for each in call) or len(arguments) != _TIME_AND_GAP:
        return NULL, NULL
    start, gap = _start(context, relation, arguments[0]), _gap(context, relation, arguments[1])
    if start is None or gap is None:
        what = "its first argument is no time" if start is None else "its gap is no length of time greater than zero"
        context.refuse(not_maintained(SESSION, place, f"{SESSION} is not maintained where {what}."))
        return NULL, NULL
    return start, compose("{start} + {gap}", start=start, gap=cast(gap, "INTERVAL"))


_TIME_AND_GAP = 2


def _resolved(context: Context, call: Lexemes, scope: Scope) -> Lexemes:
    return (*call[:2], *resolved(context, call[2:-1], scope), call[-1])


def _start(context: Context, relation: Relation, time: Lexemes) -> Scalar | None:
    """Return the time of a row as Spark takes it; None for what is no time."""
    type_ = _type(context, relation, time)
    if type_ in ("date", "string"):
        return cast(scalar(time), "TIMESTAMP_LTZ")
    return scalar(time) if type_ in ("timestamp", "timestamp_ntz", None) else None


def _gap(context: Context, relation: Relation, gap: Lexemes) -> Scalar | None:
    """Return how far behind a row its own span ends.

    None for a text that Spark knows as no length of time, and where no row would be in a session.
    """
    if len(gap) == 1 and gap[0].role is Role.LITERAL:
        text = gap[0].text
        fits = text[:1] in ("'", '"') and _GAP.fullmatch(text[1:-1])
        return scalar((replace(gap[0], spaced=False),)) if fits and any(_lengths(text)) else None
    return scalar(gap) if _type(context, relation, gap) in ("string", "interval", None) else None


def _lengths(text: str) -> Iterator[bool]:
    """Yield for each number of an interval whether it is greater than zero."""
    return (sign != "-" and float(number) > 0 for sign, number in _NUMBER.findall(text))


def _type(context: Context, relation: Relation, lexemes: Lexemes) -> str | None:
    """Return a value's type; None where nobody can be asked."""
    found = types_in(context, Project(relation, (("value", scalar(lexemes)),)))
    return None if found is None else found[0].type


def _outside(place: Place) -> Refusal:
    message = f"{SESSION} is maintained only as a whole expression of a plain GROUP BY, read outside of aggregates."
    return not_maintained(SESSION, place, message)
