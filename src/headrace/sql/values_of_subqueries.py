"""Scalar subqueries: their values as columns.

Without outer references it is an aggregate without GROUP BY, which has one row, so its value is joined to every row.
With outer columns it is the aggregate grouped by the keys that say which outer rows it is for; a row without a group
gets what the aggregate gives over no rows: zero for a count, NULL for the others.
"""

from __future__ import annotations

from headrace.algebra.relations import Aggregate, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import all_of, column
from headrace.sql.aggregates import Grouping, UngroupedError, UnsupportedCallError
from headrace.sql.context import Context, Ctes
from headrace.sql.correlation import Filtered, Inner, Rows, alone, correlated, deeper, query_at, refuse, understood
from headrace.sql.decorrelation import beside_nothing, counting, matched, null_over_nothing
from headrace.sql.pieces import SCALAR, Piece, Pieces, Role, bracketed, input_piece, scalar
from headrace.sql.refusals import not_deterministic

_STRICT = frozenset(["(", ")", "+", "-", "*", "/", "%", "=", "==", "<>", "!=", "<", "<=", ">", ">="])

UNEQUAL = "It reads outer columns whose equal values can be told apart, such as floats: 0.0 and -0.0."
"""Why a subquery with outer columns is refused."""


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
        """The value for each row of an aggregate that depends on the row."""
        if len(found.items) != 1 or not found.items[0]:
            refuse(self.context, piece, SCALAR, "The select list of the subquery could not be read.")
        match = matched(self.context, rows.relation, found.rows.relation, found.conditions, rows.names)
        if match is None:
            refuse(self.context, piece, "correlated subquery", UNEQUAL)
        assert match is not None
        grouping = Grouping(list(match.keys))
        value = self._over(grouping, found.items[0], piece)
        aggregate = grouping.relation(match.inner)
        assert isinstance(aggregate, Aggregate)
        function = null_over_nothing(aggregate)
        if function is not None:
            refuse(self.context, piece, SCALAR, f"{function} over no rows is not NULL.")
        if not aggregate.calls or any(p.role is Role.INPUT and p.parts[0] in aggregate.keys for p in value):
            refuse(self.context, piece, SCALAR, "A scalar subquery with outer columns is maintained as an aggregate.")
        names = {name: rows.names.take(name) for name in aggregate.columns}
        right = Project(aggregate, tuple((new, column(old)) for old, new in names.items()))
        keys = [
            (rows.fresh("key", scalar(t)), grouping.key(own)) for own, t in zip(match.keys, match.theirs, strict=True)
        ]
        on = all_of(match.equal(outer, names[key]) for outer, key in keys)
        assert on is not None
        counts = counting(aggregate)
        if inner and not counts and _strict(value):
            rows.relation = Join(rows.relation, right, on)
        else:
            rows.relation = OuterJoin(rows.relation, right, on)
        return beside_nothing(value, names, counts)

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


def _one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def _strict(pieces: Pieces) -> bool:
    """Whether it is NULL as soon as one of its operands is: nothing but arithmetic and comparisons."""
    operands = (Role.NAME, Role.INPUT, Role.LITERAL, Role.SUBQUERY)
    return all(p.role in operands or (p.role is Role.OPERATOR and p.text in _STRICT) for p in pieces)
