"""Scalar subqueries: their values as columns.

Without outer references it is an aggregate without GROUP BY, which has one row, so its value is joined to every row.
With equalities to outer columns it is the aggregate grouped by the other sides of these; a row without a group gets
what the aggregate gives over no rows: zero for a count, NULL for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.relations import Aggregate, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import Scalar, all_of, column, compose
from headrace.algebra.types import decimal_of, is_integer
from headrace.sql.aggregates import Grouping, UngroupedError, UnsupportedCallError
from headrace.sql.analysis import types_in
from headrace.sql.booleans import split
from headrace.sql.context import Context, Ctes
from headrace.sql.correlation import Filtered, Inner, Rows, alone, correlated, deeper, query_at, refuse, understood
from headrace.sql.pieces import SCALAR, Piece, Pieces, Role, bracketed, input_piece, scalar
from headrace.sql.refusals import not_deterministic

_STRICT = frozenset(["(", ")", "+", "-", "*", "/", "%", "=", "==", "<>", "!=", "<", "<=", ">", ">="])

_ZERO_OVER_NOTHING = frozenset(["count", "approx_count_distinct", "regr_count"])
_EMPTY_ARRAYS = frozenset(["collect_list", "collect_set", "array_agg"])


class Values:
    """Puts columns in the place of scalar subqueries.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
        filtered: Applies a condition, for the WHERE of the subqueries.
    """

    def __init__(self, context: Context, ctes: Ctes, filtered: Filtered) -> None:
        self.context = context
        self.ctes = ctes
        self.filtered = filtered

    def put_in(self, rows: Rows, pieces: Pieces, *, condition: bool = False) -> Pieces:
        """An expression with its subqueries replaced by columns.

        Args:
            rows: What the expression is evaluated over; gets the columns.
            pieces: The expression.
            condition: Whether only rows are wanted for which it, or its opposite, is true.
        """
        out: list[Piece] = []
        inner = condition and _strict(pieces)
        for piece in pieces:
            if piece.role is not Role.SUBQUERY:
                out.append(piece)
                continue
            if piece.parts[0] != SCALAR:
                refuse(self.context, piece, piece.parts[0])
            if piece.tokens not in rows.values:
                rows.values[piece.tokens] = self._value(rows, piece, inner)
            out.extend(bracketed(rows.values[piece.tokens], piece))
        return understood(self.context, tuple(out), rows.scope)

    def _value(self, rows: Rows, piece: Piece, inner: bool) -> Pieces:
        context = deeper(self.context, piece)
        query = query_at(context, piece)
        output = alone(context, query, self.ctes)
        if output is None:
            found = correlated(context, query, self.ctes, rows, piece, self.filtered)
            return self._grouped(rows, found, piece, inner)
        if len(output.relation.columns) != 1 or not _one_row(output.relation):
            message = "A scalar subquery is maintained when it is an aggregate without GROUP BY, which has one row."
            refuse(self.context, piece, SCALAR, message)
        name = rows.names.take("value")
        (old,) = output.relation.columns
        rows.relation = Join(rows.relation, Project(output.relation, ((name, column(old)),)))
        return (input_piece(name, piece),)

    def _grouped(self, rows: Rows, found: Inner, piece: Piece, inner: bool) -> Pieces:
        """The value for each row of an aggregate that depends on the row by equalities."""
        pairs = [self._sides(condition, found, piece) for condition in found.conditions]
        self._refuse_casts(pairs, rows, found, piece)
        if len(found.items) != 1 or not found.items[0]:
            refuse(self.context, piece, SCALAR, "The select list of the subquery could not be read.")
        grouping = Grouping([own for own, _ in pairs])
        value = self._over(grouping, found.items[0], piece)
        aggregate = grouping.relation(found.rows.relation)
        assert isinstance(aggregate, Aggregate)
        for call in aggregate.calls:
            if call.inside != "{}" or call.function in _EMPTY_ARRAYS:
                refuse(self.context, piece, SCALAR, f"{call.function} over no rows is not NULL.")
        if not aggregate.calls or any(p.role is Role.INPUT and p.parts[0] in aggregate.keys for p in value):
            refuse(self.context, piece, SCALAR, "A scalar subquery with outer columns is maintained as an aggregate.")
        names = {name: rows.names.take(name) for name in aggregate.columns}
        right = Project(aggregate, tuple((new, column(old)) for old, new in names.items()))
        on = []
        for own, theirs in pairs:
            outer = rows.fresh("key", scalar(theirs))
            on.append(_equal(outer, names[grouping.key(own)]))
        counts = {call.name for call in aggregate.calls if call.function in _ZERO_OVER_NOTHING}
        if inner and not counts and _strict(value):
            rows.relation = Join(rows.relation, right, all_of(on))
        else:
            condition = all_of(on)
            assert condition is not None
            rows.relation = OuterJoin(rows.relation, right, condition)
        return tuple(p for each in value for p in _beside_nothing(each, names, counts))

    def _sides(self, condition: Pieces, found: Inner, piece: Piece) -> tuple[Pieces, Pieces]:
        """An equality as (expression over the subquery's columns, expression over outer columns)."""
        own = set(found.rows.relation.columns)
        sides = next((parts for word in ("=", "==") if len(parts := split(condition, word)) == 2), None)
        if sides is not None:
            a, b = ({p.parts[0] for p in side if p.role is Role.INPUT} for side in sides)
            if a and b and a <= own and not b & own and _tight(sides):
                return sides[0], sides[1]
            if a and b and b <= own and not a & own and _tight(sides):
                return sides[1], sides[0]
        message = "A scalar subquery may depend on outer columns by equalities only."
        refuse(self.context, piece, "correlated subquery", message)
        raise AssertionError

    def _refuse_casts(self, pairs: Sequence[tuple[Pieces, Pieces]], rows: Rows, found: Inner, piece: Piece) -> None:
        """Where Spark casts to compare, several groups may equal one row: '1' and '01' are both equal to 1."""
        sides = []
        for relation, at in ((found.rows.relation, 0), (rows.relation, 1)):
            items = tuple((f"side{number}", scalar(pair[at])) for number, pair in enumerate(pairs))
            sides.append(types_in(self.context, Project(relation, items)) if items else ())
        for own, theirs in zip(sides[0] or (), sides[1] or (), strict=False):
            if not _groups_alike(own.type, theirs.type):
                message = f"The subquery compares {own.type} with {theirs.type}, so that Spark casts one of them."
                refuse(self.context, piece, "correlated subquery", f"{message} Write the cast in the subquery.")

    def _over(self, grouping: Grouping, item: Pieces, piece: Piece) -> Pieces:
        try:
            return grouping.over(item)
        except UnsupportedCallError as error:
            place = self.context.place_of(error.piece.at)
            if error.unordered:
                self.context.refuse(not_deterministic(error.construct, place, "depends on the order of its rows"))
            refuse(self.context, error.piece, error.construct)
        except UngroupedError:
            refuse(self.context, piece, SCALAR, "A scalar subquery with outer columns is maintained as an aggregate.")
        raise AssertionError


def _groups_alike(own: str, theirs: str) -> bool:
    """Whether values of one type that equal a value of the other are equal themselves."""
    if own == theirs or (is_integer(own) and is_integer(theirs)):
        return True
    a, b = decimal_of(own), decimal_of(theirs)
    return a is not None and b is not None and a[1] == b[1]


def _one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def _strict(pieces: Pieces) -> bool:
    """Whether it is NULL as soon as one of its operands is: nothing but arithmetic and comparisons."""
    operands = (Role.NAME, Role.INPUT, Role.LITERAL, Role.SUBQUERY)
    return all(p.role in operands or (p.role is Role.OPERATOR and p.text in _STRICT) for p in pieces)


def _tight(sides: tuple[Pieces, ...]) -> bool:
    """Whether no side holds an operator that binds less than the equality between them."""
    loose = (
        "AND",
        "OR",
        "NOT",
        "!",
        "IS",
        "IN",
        "BETWEEN",
        "LIKE",
        "<",
        ">",
        "<=",
        ">=",
        "<>",
        "!=",
        "<=>",
        "|",
        "^",
        "&",
    )
    return all(len(split(side, word)) == 1 for side in sides for word in loose)


def _beside_nothing(piece: Piece, names: dict[str, str], counts: set[str]) -> Pieces:
    """A column of the aggregate as it is beside a row, which may have no group."""
    if piece.role is not Role.INPUT:
        return (piece,)
    own = input_piece(names[piece.parts[0]], piece)
    if piece.parts[0] not in counts:
        return (own,)
    at = piece.at
    call = Piece(Role.CALL, "COALESCE", at, piece.spaced, ("coalesce",))
    opening, closing = Piece(Role.OPERATOR, "(", at, False), Piece(Role.OPERATOR, ")", at, False)
    return (call, opening, own, Piece(Role.OPERATOR, ",", at, False), Piece(Role.LITERAL, "0", at, True), closing)


def _equal(a: str, b: str) -> Scalar:
    return compose("{a} = {b}", a=column(a), b=column(b))
