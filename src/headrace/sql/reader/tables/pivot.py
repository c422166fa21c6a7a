"""PIVOT: rows become columns.

`t PIVOT (agg, … FOR p IN (v, …))` is t grouped by its columns that neither `p` nor the aggregates read; for each value
and aggregate it has a column, the aggregate over the group's rows with `p <=> v`. A NULL among the values means NULL.
Where every aggregate gives a number or a truth value, Spark computes them per value first, so a value without rows in
the group gives NULL whatever the aggregate is, a count as well; otherwise what the aggregate gives over no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.algebra.relations import Project, Relation
from headrace.algebra.scalar import column
from headrace.algebra.types import decimal_of, is_integer
from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.builtin_functions import AGGREGATES
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.scope import Scope, Visible
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, bracketed, closing_bracket, input_lexeme, scalar
from headrace.sql.reader.select.aggregates import Grouping, UngroupedError, UnsupportedCallError, call_at, has_aggregate
from headrace.sql.reader.spark_types import types_in
from headrace.sql.reader.syntax.query_shape import Extra
from headrace.sql.reader.syntax.tokens import words
from headrace.sql.reader.tables.pivot_clause import Clause, Value, read_clause

_NULL_OVER_NOTHING = words(
    """
    avg bit_and bit_or bit_xor bool_and bool_or every kurtosis max mean median min skewness some std stddev stddev_pop
    stddev_samp sum var_pop var_samp variance
    """
)
"""Functions of one argument that give NULL over no rows, and over nothing but NULLs."""


def pivoted(
    context: Context, relation: Relation, scope: Scope, extra: Extra, names: Names
) -> tuple[Relation, Scope] | None:
    """Return a relation with values of its rows as columns.

    None for a clause that is not understood.

    Args:
        context: The text.
        relation: The rows.
        scope: Their columns.
        extra: Where the clause stands.
        names: Hands out column names.
    """
    # what USING hides is gone behind PIVOT
    scope = replace(scope, columns=scope.star() or ())
    clause = None if scope.opaque else read_clause(context, scope, extra)
    if clause is None or not _comparable(context, relation, clause):
        return None
    gone = {v.internal for v in clause.columns} | {
        p.parts[0] for lexemes, _ in clause.aggregates for p in lexemes if p.role is Role.INPUT
    }
    kept = tuple(v for v in scope.columns if v.internal not in gone)
    try:
        return _grouped(context, relation, scope, clause, kept, names)
    except (UnsupportedCallError, UngroupedError):
        return None


def _grouped(
    context: Context, relation: Relation, scope: Scope, clause: Clause, kept: tuple[Visible, ...], names: Names
) -> tuple[Relation, Scope]:
    like = clause.aggregates[0][0][0]
    grouping = Grouping([(input_lexeme(v.internal, like),) for v in kept])
    by_value = _by_value(context, relation, clause)
    columns: list[tuple[str, Lexemes]] = []
    added: list[Visible] = []
    for i, value in enumerate(clause.values):
        condition = _condition(clause.columns, value, like)
        there = grouping.over(_count(condition, like))
        for j, (lexemes, suffix) in enumerate(clause.aggregates):
            own = grouping.over(_filtered(lexemes, condition))
            own = own if not by_value or _null_over_nothing(lexemes) else _when_there(there, own, like)
            shown = _name(value, suffix, single=len(clause.aggregates) == 1)
            internal = names.take(f"pivot.{shown or f'{i}.{j}'}")
            columns.append((internal, own))
            added.append(Visible((), shown or f"\0pivot.{i}.{j}", internal))
    rows = grouping.relation(relation)
    keys = tuple((v.internal, column(grouping.key((input_lexeme(v.internal, like),)))) for v in kept)
    result = Project(rows, (*keys, *((name, scalar(lexemes)) for name, lexemes in columns)))
    return result, Scope((*kept, *added), scope.case_sensitive)


def _name(value: Value, suffix: str | None, *, single: bool) -> str | None:
    if single or value.name is None:
        return value.name
    return None if suffix is None else f"{value.name}_{suffix}"


# types

_BY_VALUE = ("boolean", "double", "float")


def _by_value(context: Context, relation: Relation, clause: Clause) -> bool:
    """Return whether Spark aggregates per value first: all results are numbers or booleans."""
    if all(_null_over_nothing(lexemes) for lexemes, _ in clause.aggregates):
        return False
    grouping = Grouping([])
    items = tuple((f"a{i}", scalar(grouping.over(lexemes))) for i, (lexemes, _) in enumerate(clause.aggregates))
    found = types_in(context, Project(grouping.relation(relation), items)) or ()
    return all(c.type in _BY_VALUE or is_integer(c.type) or decimal_of(c.type) is not None for c in found)


_LITERALS = {"string": "string", "boolean": "boolean", "date": "date"}


def _comparable(context: Context, relation: Relation, clause: Clause) -> bool:
    """Return whether each constant has its column's type, so that no cast is needed."""
    types = {c.name: c.type for c in types_in(context, relation) or ()}
    for i, visible in enumerate(clause.columns):
        type_ = types.get(visible.internal)
        wanted = "integer" if is_integer(type_) else _LITERALS.get(type_ or "")
        kinds = {value.literals[i].kind for value in clause.values} - {"null"}
        if types and (wanted is None or not kinds <= {wanted}):
            return False
    return True


# expressions


def _condition(columns: Sequence[Visible], value: Value, like: Lexeme) -> Lexemes:
    out: list[Lexeme] = []
    for i, (visible, literal) in enumerate(zip(columns, value.literals, strict=True)):
        if i:
            out.append(Lexeme(Role.OPERATOR, "AND", like.at, True))
        out.append(input_lexeme(visible.internal, Lexeme(Role.INPUT, "", like.at, bool(i))))
        out += [Lexeme(Role.OPERATOR, "<=>", like.at, True), Lexeme(Role.LITERAL, literal.sql, like.at, True)]
    return tuple(out)


def _count(condition: Lexemes, like: Lexeme) -> Lexemes:
    opening, closing = Lexeme(Role.OPERATOR, "(", like.at, False), Lexeme(Role.OPERATOR, ")", like.at, False)
    call = Lexeme(Role.CALL, "count", like.at, False, ("count",))
    return (call, opening, Lexeme(Role.STAR, "*", like.at, False), closing, *_filter(condition, like))


def _filter(condition: Lexemes, like: Lexeme) -> Lexemes:
    texts = (("FILTER", True), ("(", True), ("WHERE", False))
    head = tuple(Lexeme(Role.OPERATOR, text, like.at, spaced) for text, spaced in texts)
    return (*head, *_spaced(condition), Lexeme(Role.OPERATOR, ")", like.at, False))


def _spaced(lexemes: Lexemes) -> Lexemes:
    return (replace(lexemes[0], spaced=True), *lexemes[1:])


def _filtered(lexemes: Lexemes, condition: Lexemes) -> Lexemes:
    """Return the expression with every aggregate call restricted to some rows."""
    out: list[Lexeme] = []
    at = 0
    while at < len(lexemes):
        lexeme = lexemes[at]
        if lexeme.role is not Role.CALL or lexeme.parts[0] not in AGGREGATES:
            out.append(lexeme)
            at += 1
            continue
        call = call_at(lexemes, at)
        both = condition
        if call.filter is not None:
            both = (*bracketed(call.filter, lexeme), Lexeme(Role.OPERATOR, "AND", lexeme.at, True), *_spaced(condition))
        out += [*lexemes[at : closing_bracket(lexemes, at + 1) + 1], *_filter(both, lexeme)]
        at = call.end
    return tuple(out)


def _null_over_nothing(lexemes: Lexemes) -> bool:
    """Return whether it is one call, and that gives NULL over no rows."""
    alone = has_aggregate(lexemes[:1]) and call_at(lexemes, 0).end == len(lexemes)
    return alone and lexemes[0].parts[0] in _NULL_OVER_NOTHING


def _when_there(count: Lexemes, value: Lexemes, like: Lexeme) -> Lexemes:
    """Return CASE WHEN count > 0 THEN value END."""

    def word(text: str) -> Lexeme:
        return Lexeme(Role.OPERATOR, text, like.at, True)

    end = Lexeme(Role.END, "END", like.at, True)
    zero = Lexeme(Role.LITERAL, "0", like.at, True)
    return (word("CASE"), word("WHEN"), *_spaced(count), word(">"), zero, word("THEN"), *_spaced(value), end)
