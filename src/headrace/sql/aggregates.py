"""From the expressions of a grouped SELECT to keys, aggregate calls, and expressions over both."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.algebra.relations import Aggregate, AggregateCall, Project, Relation
from headrace.algebra.scalar import Scalar, column
from headrace.sql.determinism import ORDER_DEPENDENT
from headrace.sql.functions import AGGREGATES
from headrace.sql.matching import match_at
from headrace.sql.naming import Names, plain_name
from headrace.sql.pieces import Piece, Pieces, Role, closing_bracket, input_piece, keys, scalar, split_arguments

_FUNCTIONS = {"count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max"}
_INDIFFERENT_TO_COPIES = frozenset({"min", "max"})


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call found in an expression.

    Args:
        function: Its lower-case name.
        arguments: Its arguments.
        distinct: Whether DISTINCT was written.
        filter: The FILTER condition.
        end: Index after its last piece.
    """

    function: str
    arguments: tuple[Pieces, ...]
    distinct: bool
    filter: Pieces | None
    end: int


def has_aggregate(pieces: Pieces) -> bool:
    """Whether an expression calls an aggregate function."""
    return any(piece.role is Role.CALL and piece.parts[0] in AGGREGATES for piece in pieces)


def call_at(pieces: Pieces, at: int) -> Call:
    """The aggregate call whose name stands at `at`."""
    closing = closing_bracket(pieces, at + 1)
    inside = pieces[at + 2 : closing]
    distinct = bool(inside) and inside[0].role is Role.OPERATOR and inside[0].text.upper() == "DISTINCT"
    if distinct or (inside and inside[0].role is Role.OPERATOR and inside[0].text.upper() == "ALL"):
        inside = inside[1:]
    condition, end = None, closing + 1
    if end < len(pieces) and pieces[end].role is Role.OPERATOR and pieces[end].text.upper() == "FILTER":
        last = closing_bracket(pieces, end + 1)
        condition, end = pieces[end + 3 : last], last + 1
    return Call(pieces[at].parts[0], split_arguments(inside), distinct, condition, end)


class UnsupportedCallError(Exception):
    """An aggregate call that is not maintained.

    Args:
        construct: Its name in SQL words.
        piece: Where it stands.
        unordered: Whether the reason is that rows have no order.
    """

    def __init__(self, construct: str, piece: Piece, *, unordered: bool = False) -> None:
        super().__init__(construct)
        self.construct = construct
        self.piece = piece
        self.unordered = unordered


class UngroupedError(Exception):
    """A column that is neither grouped by nor inside an aggregate, as far as can be seen."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(piece.text)
        self.piece = piece


@dataclass
class Grouping:
    """Collects what one grouped SELECT needs from its input.

    Args:
        grouped: The grouping expressions.
        names: Hands out column names.
    """

    grouped: list[Pieces]
    names: Names = field(default_factory=Names)
    _key_names: list[str] = field(default_factory=list)
    _arguments: dict[tuple[tuple[str, ...], ...], tuple[str, Scalar]] = field(default_factory=dict)
    _calls: dict[tuple[object, ...], AggregateCall] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unique = {keys(pieces): pieces for pieces in self.grouped}
        self.grouped = list(unique.values())
        for i, pieces in enumerate(self.grouped, 1):
            self._key_names.append(self.names.take(plain_name(pieces) or f"key_{i}"))

    def over(self, pieces: Pieces) -> Pieces:
        """An expression of the SELECT list or HAVING, over the aggregate's columns.

        Raises:
            UnsupportedCallError: It calls an aggregate that is not maintained.
            UngroupedError: It reads a column that is gone after grouping.
        """
        out: list[Piece] = []
        at = 0
        while at < len(pieces):
            piece = pieces[at]
            if (key := self._key_at(pieces, at)) is not None:
                out.append(input_piece(self._key_names[key], piece))
                at += len(self.grouped[key])
            elif piece.role is Role.CALL and piece.parts[0] in AGGREGATES:
                call = call_at(pieces, at)
                out.append(input_piece(self._call(call, piece), piece))
                at = call.end
            elif piece.role is Role.INPUT:
                raise UngroupedError(piece)
            else:
                out.append(piece)
                at += 1
        return tuple(out)

    def key(self, pieces: Pieces) -> str:
        """The column of a grouping expression."""
        return self._key_names[[keys(each) for each in self.grouped].index(keys(pieces))]

    def relation(self, source: Relation) -> Aggregate:
        """The aggregate over its input, once every expression has been through `over`."""
        items = [(name, scalar(pieces)) for name, pieces in zip(self._key_names, self.grouped, strict=True)]
        items += self._arguments.values()
        calls = tuple(self._calls.values())
        if not self._key_names and not calls:
            calls = (AggregateCall(self.names.take("rows"), "count"),)
        return Aggregate(Project(source, tuple(items)), tuple(self._key_names), calls)

    def _key_at(self, pieces: Pieces, at: int) -> int | None:
        """The longest grouping expression that stands here."""
        fitting = [i for i, key in enumerate(self.grouped) if match_at(pieces, at, key) and _reads(key)]
        return max(fitting, key=lambda i: len(self.grouped[i]), default=None)

    def _call(self, call: Call, piece: Piece) -> str:
        function = _supported(call, piece)
        argument = None if call.arguments[0][0].role is Role.STAR else self._argument(call.arguments[0], "arg")
        condition = None if call.filter is None else self._argument(call.filter, "filter")
        identity = (function, argument, condition)
        if identity not in self._calls:
            stem = f"{function}_{argument.sql.strip('`')}" if argument else "count_all"
            self._calls[identity] = AggregateCall(self.names.take(stem), function, argument, condition)
        return self._calls[identity].name

    def _argument(self, pieces: Pieces, stem: str) -> Scalar:
        """A column of the projection below the aggregate that holds the argument."""
        same = keys(pieces)
        for name, grouped in zip(self._key_names, self.grouped, strict=True):
            if keys(grouped) == same:
                return column(name)
        if same not in self._arguments:
            self._arguments[same] = (self.names.take(plain_name(pieces) or f"{stem}_1"), scalar(pieces))
        return column(self._arguments[same][0])


def _reads(key: Pieces) -> bool:
    return any(piece.role is Role.INPUT for piece in key)


def _supported(call: Call, piece: Piece) -> str:
    """The canonical function name.

    Raises:
        UnsupportedCallError: It is not maintained.
    """
    function = _FUNCTIONS.get(call.function)
    if function is None:
        raise UnsupportedCallError(f"{call.function}()", piece, unordered=call.function in ORDER_DEPENDENT)
    if call.distinct and function not in _INDIFFERENT_TO_COPIES:
        raise UnsupportedCallError("aggregate DISTINCT", piece)
    if len(call.arguments) != 1 or not call.arguments[0]:
        raise UnsupportedCallError(f"{function}() with {len(call.arguments)} arguments", piece)
    first = call.arguments[0]
    if first[0].role is Role.STAR and (function != "count" or len(first) != 1 or first[0].text != "*"):
        raise UnsupportedCallError(f"{function}({first[0].text})", piece)
    if any(p.role is Role.CALL and p.parts[0] in AGGREGATES for p in first):
        raise UnsupportedCallError("aggregate of an aggregate", piece)
    return function
