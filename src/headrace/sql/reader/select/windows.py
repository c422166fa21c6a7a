"""Turns window functions of a SELECT into stacked windows, one for each PARTITION BY.

A function of another PARTITION BY reads the rows that the one below it passes on, so their order does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from headrace.algebra.properties.order import POSITIONAL
from headrace.algebra.relations import Project, Relation, SortKey, Window, WindowCall
from headrace.algebra.scalar import Scalar
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.ties import SETTLED
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.scalars.lexemes import (
    Lexeme,
    Lexemes,
    Role,
    closing_bracket,
    input_lexeme,
    keys,
    scalar,
    split_arguments,
    unquoted,
)
from headrace.sql.reader.select.order_clauses import Texts, note_over
from headrace.sql.reader.syntax.over_clause import DIRECTION, FRAME, ORDER, PARTITION
from headrace.sql.reader.syntax.query_shape import Range

Definitions = Mapping[str, Lexemes]
"""Named windows, folded, with what stands inside their brackets."""


def has_window(lexemes: Lexemes) -> bool:
    """Return whether an expression calls a window function."""
    return any(lexeme.role is Role.WINDOW for lexeme in lexemes)


def named_window(definition: Lexemes) -> str:
    """Return the window that a definition is only a name of; "" where it is none."""
    alone = len(definition) == 1 and definition[0].role is Role.LITERAL
    return unquoted(definition[0].text) if alone else ""


def with_definitions(context: Context, lexemes: Lexemes, definitions: Definitions) -> Lexemes:
    """Put the definitions of named windows in the place of their names: `OVER w`, `OVER (w)`."""
    out: list[Lexeme] = []
    for i, lexeme in enumerate(lexemes):
        after_over = _is(lexemes, i - 1, "OVER")
        inside = _is(lexemes, i - 1, "(") and _is(lexemes, i - 2, "OVER") and _is(lexemes, i + 1, ")")
        if lexeme.role is not Role.LITERAL or not (after_over or inside):
            out.append(lexeme)
            continue
        found = definitions.get(context.fold(unquoted(lexeme.text)))
        if found is None:
            context.refuse(not_maintained("window function", context.place_of(lexeme.at)))
        elif inside:
            out.extend(found)
        else:
            bracket = Lexeme(Role.OPERATOR, "(", lexeme.at, True)
            out += [bracket, *found, Lexeme(Role.OPERATOR, ")", lexeme.at, False)]
    return tuple(out)


def _is(lexemes: Lexemes, at: int, text: str) -> bool:
    return 0 <= at < len(lexemes) and lexemes[at].role is Role.OPERATOR and lexemes[at].text.upper() == text


@dataclass(frozen=True, slots=True)
class Over:
    """An OVER clause.

    Args:
        partition: The expressions of PARTITION BY.
        order: The expressions of ORDER BY.
        frame: The frame as written.
        frame_at: Where it stands within the brackets.
    """

    partition: tuple[Lexemes, ...]
    order: tuple[SortKey, ...]
    frame: str
    frame_at: int


@dataclass
class Windowing:
    """Collects the window functions of one SELECT.

    Args:
        context: Where refusals go.
        relation: The rows they are computed over.
        divided: Columns that every PARTITION BY begins with.
        named: Named windows.
        texts: How the SELECT names the columns of the rows.
    """

    context: Context
    relation: Relation
    divided: tuple[str, ...] = ()
    named: tuple[tuple[str, Range], ...] = ()
    texts: Texts = field(default_factory=dict)
    _names: Names = field(default_factory=Names)
    _keys: dict[tuple[tuple[str, ...], ...], tuple[str, Scalar]] = field(default_factory=dict)
    _calls: dict[tuple[str, ...], list[WindowCall]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.relation.columns:
            self._names.take(name)

    def over(self, lexemes: Lexemes) -> Lexemes:
        """Return an expression with columns in the place of its window functions."""
        out: list[Lexeme] = []
        at = 0
        while at < len(lexemes):
            if lexemes[at].role is not Role.WINDOW:
                out.append(lexemes[at])
                at += 1
                continue
            clause = next((i for i in range(at, len(lexemes)) if _ends_call(lexemes, at, i)), len(lexemes) - 1)
            end = closing_bracket(lexemes, clause + 1) + 1
            inside = lexemes[clause + 2 : end - 1]
            if inside and not _begins(inside, 0):
                self.context.refuse(not_maintained("window function", self.context.place_of(inside[0].at)))
            over = _over(inside)
            out.append(input_lexeme(self._call(lexemes[at:clause], over), lexemes[at]))
            note_over(
                self.context,
                lexemes[at:clause],
                lexemes[clause:end],
                over.frame_at,
                self.named,
                self.texts,
                ordered=bool(over.order),
            )
            at = end
        return tuple(out)

    def windows(self) -> Relation:
        """Return the windows over the relation, once every expression has been through `over`."""
        result: Relation = Project(self.relation, (*identity(self.relation.columns), *self._keys.values()))
        for partition, calls in self._calls.items():
            result = Window(result, partition, tuple(calls))
        return result

    def _call(self, call: Lexemes, over: Over) -> str:
        function = call[0].parts[0]
        self._judge(call)
        partition = tuple(dict.fromkeys((*self.divided, *(self._key(key) for key in over.partition))))
        calls = self._calls.setdefault(partition, [])
        text = scalar(call)
        for known in calls:
            if (known.call, known.order, known.frame) == (text, over.order, over.frame):
                return known.name
        name = self._names.take(function)
        place = self.context.place_of(call[0].at)
        calls.append(WindowCall(name, function, text, over.order, over.frame, place))
        return name

    def _judge(self, call: Lexemes) -> None:
        function, place = call[0].parts[0], self.context.place_of(call[0].at)
        if function in ("mode", "collect_set", "listagg", "string_agg"):
            self.context.refuse_value(f"{function}()", place, "depends on the order of its rows")
        elif function not in POSITIONAL | SETTLED:
            self.context.refuse(not_maintained(f"{function}() OVER", place))
        elif has_window(call[1:]):
            self.context.refuse(not_maintained("window function of a window function", place))

    def _key(self, lexemes: Lexemes) -> str:
        if len(lexemes) == 1 and lexemes[0].role is Role.INPUT:
            return lexemes[0].parts[0]
        return self._keys.setdefault(keys(lexemes), (self._names.take("partition"), scalar(lexemes)))[0]


def _ends_call(lexemes: Lexemes, start: int, at: int) -> bool:
    """Return whether the OVER of the call at `start` is here, after its brackets."""
    closing = closing_bracket(lexemes, start + 1)
    if at <= closing or not _is(lexemes, at, "OVER"):
        return False
    if _is(lexemes, closing + 1, "FILTER"):
        return at > closing_bracket(lexemes, closing + 2)
    return True


def _over(lexemes: Lexemes) -> Over:
    """Read what stands inside the brackets of OVER."""
    partition: tuple[Lexemes, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame, frame_at = "", len(lexemes)
    starts = [i for i in range(len(lexemes)) if _begins(lexemes, i)]
    for start, end in pairwise((*starts, len(lexemes))):
        word = lexemes[start].text.upper()
        if word in FRAME:
            frame, frame_at = " ".join(lexeme.text for lexeme in lexemes[start:end]), start
        elif word in ORDER:
            order = tuple(_sort_key(each) for each in split_arguments(lexemes[start + 2 : end]))
        else:
            partition = split_arguments(lexemes[start + 2 : end])
    return Over(partition, order, frame, frame_at)


def _begins(lexemes: Lexemes, at: int) -> bool:
    lexeme = lexemes[at]
    if lexeme.role is not Role.OPERATOR or _depth(lexemes, at):
        return False
    return lexeme.text.upper() in FRAME or (lexeme.text.upper() in PARTITION | ORDER and _is(lexemes, at + 1, "BY"))


def _depth(lexemes: Lexemes, at: int) -> int:
    brackets = [lexeme.text for lexeme in lexemes[:at] if lexeme.role is Role.OPERATOR]
    return sum((text in ("(", "[")) - (text in (")", "]")) for text in brackets)


def _sort_key(lexemes: Lexemes) -> SortKey:
    expression, direction = directed(lexemes)
    return SortKey(scalar(expression), direction)


def directed(lexemes: Lexemes) -> tuple[Lexemes, str]:
    """Return an expression of ORDER BY and the direction that follows it."""
    last = len(lexemes)
    while last and lexemes[last - 1].role is Role.OPERATOR and lexemes[last - 1].text.upper() in DIRECTION:
        last -= 1
    return lexemes[:last], " ".join(lexeme.text.upper() for lexeme in lexemes[last:])
