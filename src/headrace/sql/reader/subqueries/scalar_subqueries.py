"""Scalar subqueries: their values as columns.

Without outer references it is one row, joined to every row. With outer columns it is an aggregate grouped by the keys
that say which outer rows it is for; a row without a group gets what the aggregate gives over no rows: zero for a count,
an empty array for a list, NULL for the others. What is no aggregate must have one row at most (`only_value`); what
groups or cuts off the rows that it finds for an outer row is read as a LATERAL subquery is.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.algebra.relations import Aggregate, Join, OuterJoin, Project, Relation
from headrace.algebra.scalar import Scalar, all_of, column
from headrace.sql.reader.context import Context, Ctes
from headrace.sql.reader.names.resolve import lexemes_of
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.refusals import not_deterministic
from headrace.sql.reader.scalars.booleans import Condition, condition
from headrace.sql.reader.scalars.inner_conditions import inner_conditions
from headrace.sql.reader.scalars.lexemes import EXISTS, SCALAR, Lexeme, Lexemes, Role, bracketed, input_lexeme, scalar
from headrace.sql.reader.select.aggregates import Grouping, UngroupedError, UnsupportedCallError, has_aggregate
from headrace.sql.reader.subqueries.correlation import (
    Filtered,
    Inner,
    Rows,
    alone,
    correlated,
    deeper,
    plain,
    query_at,
    refuse,
    understood,
)
from headrace.sql.reader.subqueries.decorrelation import beside_nothing, matched, over_nothing
from headrace.sql.reader.subqueries.grouped_partners import UNEQUAL
from headrace.sql.reader.subqueries.single_value import one_row, only_call, only_row, unordered
from headrace.sql.reader.syntax.query_shape import Query, Select
from headrace.sql.reader.tables.from_reader import FromReader
from headrace.sql.reader.tables.lateral_item import Lateral

_STRICT = frozenset(["(", ")", "+", "-", "*", "/", "%", "=", "==", "<>", "!=", "<", "<=", ">", ">="])

Decided = Callable[[Rows, Condition], Lexemes]
"""A condition over rows that have got columns for its subqueries."""


class Values:
    """Puts columns in the place of scalar subqueries.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
        filtered: Applies a condition, for the WHERE of the subqueries.
        decided: Reads a condition that is part of an expression.
    """

    def __init__(self, context: Context, ctes: Ctes, filtered: Filtered, decided: Decided) -> None:
        self.context = context
        self.ctes = ctes
        self.filtered = filtered
        self.decided = decided

    def put_in(self, rows: Rows, lexemes: Lexemes, *, only_true: bool = False) -> Lexemes:
        """Return an expression with its subqueries replaced by columns.

        Args:
            rows: What the expression is evaluated over; gets the columns.
            lexemes: The expression.
            only_true: Whether only rows are wanted for which it, or its opposite, is true.
        """
        out: list[Lexeme] = []
        inner = only_true and _strict(lexemes)
        for lexeme in self._with_conditions(rows, lexemes):
            if lexeme.role is not Role.SUBQUERY:
                out.append(lexeme)
                continue
            if lexeme.parts[0] == EXISTS:
                out.extend(bracketed(self.decided(rows, condition((lexeme,))), lexeme))
                continue
            if lexeme.parts[0] != SCALAR:
                refuse(self.context, lexeme, lexeme.parts[0])
            if lexeme.tokens not in rows.values:
                rows.values[lexeme.tokens] = self._value(rows, lexeme, inner)
            out.extend(bracketed(rows.values[lexeme.tokens], lexeme))
        return understood(self.context, tuple(out), rows.scope)

    def _with_conditions(self, rows: Rows, lexemes: Lexemes) -> Lexemes:
        """Return the expression with columns for the subqueries of conditions inside it."""
        out: list[Lexeme] = []
        end = 0
        for start, stop in inner_conditions(lexemes):
            decided = self.decided(rows, condition(lexemes[start:stop]))
            out += [*lexemes[end:start], *bracketed(decided, lexemes[start])]
            end = stop
        return (*out, *lexemes[end:])

    def _value(self, rows: Rows, lexeme: Lexeme, inner: bool) -> Lexemes:
        context = deeper(self.context, lexeme)
        query = query_at(context, self.ctes, lexeme)
        output = alone(context, query, self.ctes)
        if output is None and self._does_more(context, query):
            return self._beside(context, rows, query, lexeme)
        if output is None:
            found = correlated(context, query, self.ctes, rows, lexeme, self.filtered)
            return self.grouped(rows, found, lexeme, inner=inner)
        if len(output.relation.columns) != 1:
            refuse(self.context, lexeme, SCALAR, "A subquery of one value has one column.")
        name = rows.names.take("value")
        (old,) = output.relation.columns
        if one_row(output.relation):
            only: Relation = Project(output.relation, ((name, column(old)),))
        else:
            self._check_order(output.relation, column(old), lexeme)
            only = only_row(output.relation, name)
        rows.relation = Join(rows.relation, only)
        return (input_lexeme(name, lexeme),)

    def _does_more(self, context: Context, query: Query) -> bool:
        """Return whether a query is more than SELECT … FROM … WHERE.

        DISTINCT does nothing to the one row of an aggregate.
        """
        body = plain(query)
        if body is None or not body.distinct:
            return body is None
        return not any(has_aggregate(lexemes_of(context, within)) for within in body.items)

    def _check_order(self, relation: Relation, value: Scalar, lexeme: Lexeme) -> None:
        why = unordered(self.context, relation, value)
        if why is not None:
            refuse(self.context, lexeme, SCALAR, why)

    def _beside(self, context: Context, rows: Rows, query: Query, lexeme: Lexeme) -> Lexemes:
        """Return the value of a subquery that does more with its rows than SELECT … FROM … WHERE."""

        def read_from(select: Select) -> tuple[Relation, Scope]:
            reader = FromReader(context, self.ctes)
            reader.names = rows.names
            joined = reader.block(select)
            return joined.relation, joined.scope

        asked = Lateral(
            query, "value", "", rows.relation, rows.scope, rows.names, read_from, True, lambda _: None, single=True
        )
        found = context.read_lateral(context, self.ctes, asked)
        if found is None or len(found[1]) != 1:
            message = "A scalar subquery with outer columns is maintained when it reads them in WHERE only."
            refuse(self.context, lexeme, "correlated subquery", message)
        assert found is not None
        rows.relation, (value,) = found
        return (input_lexeme(value.internal, lexeme),)

    def grouped(self, rows: Rows, found: Inner, lexeme: Lexeme, *, inner: bool = False) -> Lexemes:
        """Return the value for each row of an aggregate that depends on the row.

        Args:
            rows: The rows; get a column.
            found: The subquery, whose one item is the aggregate.
            lexeme: Where it stands.
            inner: Whether rows for which the value is NULL may go.
        """
        if len(found.items) != 1 or not found.items[0]:
            refuse(self.context, lexeme, SCALAR, "The select list of the subquery could not be read.")
        match = matched(self.context, rows.relation, found.rows.relation, found.conditions, rows.names)
        if match is None:
            refuse(self.context, lexeme, "correlated subquery", UNEQUAL)
        assert match is not None
        grouping = Grouping(list(match.keys), any_order=self.context.origins_only, place_of=self.context.place_of)
        value = self._over(grouping, self._summed_up(found, lexeme), lexeme)
        aggregate = grouping.relation(match.inner)
        assert isinstance(aggregate, Aggregate)
        if not aggregate.calls or any(p.role is Role.INPUT and p.parts[0] in aggregate.keys for p in value):
            refuse(self.context, lexeme, SCALAR, "A scalar subquery with outer columns is maintained as an aggregate.")
        names = {name: rows.names.take(name) for name in aggregate.columns}
        right = Project(aggregate, tuple((new, column(old)) for old, new in names.items()))
        keys = [
            (rows.fresh("key", scalar(t)), grouping.key(own)) for own, t in zip(match.keys, match.theirs, strict=True)
        ]
        on = all_of(match.equal(outer, names[key]) for outer, key in keys)
        assert on is not None
        nothing = over_nothing(aggregate)
        if inner and not nothing and _strict(value):
            rows.relation = Join(rows.relation, right, on)
        else:
            rows.relation = OuterJoin(rows.relation, right, on)
        return beside_nothing(value, names, nothing)

    def _summed_up(self, found: Inner, lexeme: Lexeme) -> Lexemes:
        """Return the select item as an expression over aggregates."""
        (item,) = found.items
        if has_aggregate(item):
            return item
        self._check_order(found.rows.relation, scalar(item), lexeme)
        return only_call(item, lexeme)

    def _over(self, grouping: Grouping, item: Lexemes, lexeme: Lexeme) -> Lexemes:
        try:
            return grouping.over(item)
        except UnsupportedCallError as error:
            place = self.context.place_of(error.lexeme.at)
            if error.unordered:
                self.context.refuse(not_deterministic(error.construct, place, "depends on the order of its rows"))
            refuse(self.context, error.lexeme, error.construct)
        except UngroupedError:
            refuse(self.context, lexeme, SCALAR, "A scalar subquery with outer columns is maintained as an aggregate.")
        raise AssertionError


def _strict(lexemes: Lexemes) -> bool:
    """Return whether an expression is NULL if an operand is: arithmetic and comparisons only."""
    operands = (Role.NAME, Role.INPUT, Role.LITERAL, Role.END, Role.SUBQUERY)
    return all(p.role in operands or (p.role is Role.OPERATOR and p.text in _STRICT) for p in lexemes)
