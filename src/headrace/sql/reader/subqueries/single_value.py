"""Reduces a scalar subquery to one value: NULL without a row, an error with several.

It is the greatest value of the rows, beside their number: a function of the rows that is maintained as any aggregate.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.relations import Aggregate, AggregateCall, Project, Relation, Values
from headrace.algebra.scalar import Scalar, column, compose
from headrace.algebra.types import groupable, mentions
from headrace.sql.reader.context import Context
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, bracketed
from headrace.sql.reader.spark_types import types_in

_SEVERAL = "'[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an expression.'"
_ORDERED = "A subquery of one value is maintained when its values have an order."


def only_call(lexemes: Lexemes, like: Lexeme) -> Lexemes:
    """Return a value of a group's rows as an expression over the group.

    Args:
        lexemes: The value.
        like: Where the subquery stands.
    """

    def word(text: str, role: Role = Role.OPERATOR) -> Lexeme:
        return Lexeme(role, text, like.at, True)

    def call(function: str, *inside: Lexeme) -> Lexemes:
        head = Lexeme(Role.CALL, function, like.at, True, (function,))
        opening, closing = Lexeme(Role.OPERATOR, "(", like.at, False), Lexeme(Role.OPERATOR, ")", like.at, False)
        return (head, opening, replace(inside[0], spaced=False), *inside[1:], closing)

    several = (*call("count", word("*", Role.STAR)), word(">"), word("1", Role.LITERAL))
    failing = call("raise_error", word(_SEVERAL, Role.LITERAL))
    value = call("max", *bracketed(lexemes, word("")))
    end = word("END", Role.END)
    return (word("CASE"), word("WHEN"), *several, word("THEN"), *failing, word("ELSE"), *value, end)


def unordered(context: Context, relation: Relation, value: Scalar) -> str | None:
    """Return why a value may not be the only one; None if it is.

    Args:
        context: Knows whom to ask for types.
        relation: The rows.
        value: The value, over these rows.
    """
    types = types_in(context, Project(relation, (("value", value),))) or ()
    fit = all(groupable(each.type) and not mentions(each.type, "interval") for each in types)
    return None if fit else _ORDERED


def one_row(relation: Relation) -> bool:
    """Return whether a relation is known to have exactly one row."""
    while isinstance(relation, Project):
        relation = relation.input
    if isinstance(relation, Values):
        return len(relation.rows) == 1
    return isinstance(relation, Aggregate) and not relation.keys


def only_row(relation: Relation, name: str) -> Relation:
    """Return one row with the only value of a relation of one column.

    Args:
        relation: The rows.
        name: What the column is called.
    """
    (own,) = relation.columns
    calls = (AggregateCall("only", "max", column(own)), AggregateCall("rows", "count"))
    return Project(Aggregate(relation, (), calls), ((name, checked("only", "rows")),))


def checked(only: str, rows: str) -> Scalar:
    """Return the value, unless there are several rows.

    Args:
        only: The column with the greatest value.
        rows: The column with the number of rows.
    """
    return compose(f"CASE WHEN {{n}} > 1 THEN raise_error({_SEVERAL}) ELSE {{v}} END", n=column(rows), v=column(only))
