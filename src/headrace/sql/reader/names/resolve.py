"""Giving the names in a scalar their meaning, and judging the functions it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.builtin_functions import AGGREGATES, GENERATORS, SCALARS, TIME_WINDOWS, WINDOWS
from headrace.sql.reader.functions.determinism import (
    BEFORE_ALIASES,
    NON_DETERMINISTIC,
    NON_DETERMINISTIC_WITHOUT_ARGUMENTS,
    WITHOUT_BRACKETS,
    moving_literal,
)
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope
from headrace.sql.reader.refusals import Refusal, not_maintained
from headrace.sql.reader.scalars.cut_scalar import cut, cut_window
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, bracketed, input_lexeme
from headrace.sql.reader.scalars.struct_fields import with_field_names
from headrace.sql.reader.scalars.window_times import with_window_times
from headrace.sql.reader.syntax.query_shape import Range
from headrace.sql.reader.syntax.tokens import is_string

_SPECIAL = frozenset({"cast", "try_cast", "case", "in", "timestampadd", "timestampdiff", "timediff", "extract", "if"})

_KNOWN = SCALARS | AGGREGATES | WINDOWS | _SPECIAL

SPARKS_OWN = _KNOWN | TIME_WINDOWS | GENERATORS | NON_DETERMINISTIC.keys() | NON_DETERMINISTIC_WITHOUT_ARGUMENTS
"""Names that mean a function of Spark's."""

_DECLARE = "Declare it in the project's functions.py: then its body is known, and whether it is deterministic."

Aliases = Mapping[str, Lexemes]
"""Select aliases, folded, with the expression each stands for."""


def lexemes_of(context: Context, within: Range) -> Lexemes:
    """Cut a scalar and take down what in it is never maintained."""
    return _taken_down(context, *cut(context.cursor, within, context.fold))


def prepared_lexemes(context: Context, within: Range) -> Lexemes:
    """Cut a scalar, to look at its names before they are resolved."""
    return _prepared(lexemes_of(context, within))


def _prepared(lexemes: Lexemes) -> Lexemes:
    """Return a scalar in words that mean the same when its names have become columns.

    Not to be done twice.
    """
    return with_window_times(with_field_names(lexemes))


def window_lexemes(context: Context, within: Range) -> Lexemes:
    """Cut the definition of a named window."""
    return _taken_down(context, *cut_window(context.cursor, within, context.fold))


def _taken_down(context: Context, lexemes: Lexemes, refusals: Iterable[Refusal]) -> Lexemes:
    for refusal in refusals:
        context.refuse(refusal)
    for lexeme in lexemes:
        if lexeme.role is Role.LITERAL and is_string(lexeme.text) and moving_literal(lexeme.text):
            context.moving_literals.setdefault(lexeme.text, context.place_of(lexeme.at))
    return lexemes


def resolved(
    context: Context,
    lexemes: Lexemes,
    scope: Scope,
    aliases: Aliases | None = None,
    alias_first: frozenset[int] = frozenset(),
    *,
    prepared: bool = False,
    subqueries: bool = False,
    functions_first: bool = True,
) -> Lexemes:
    """Replace every name by the column it means.

    Args:
        context: Where refusals go.
        lexemes: The scalar.
        scope: Columns of the input; they win over aliases.
        aliases: Expressions of the same SELECT that may be referred to by alias.
        alias_first: Indices of the lexemes for which an alias wins over a column.
        prepared: Whether the scalar comes from `prepared_lexemes`, as it has to where `alias_first` is given.
        subqueries: Whether subqueries are read later; otherwise they are refused.
        functions_first: Whether a bare word that calls a function, such as `user`, does so in spite of an alias.
    """
    out: list[Lexeme] = []
    lexemes = lexemes if prepared else _prepared(lexemes)
    for i, lexeme in enumerate(lexemes):
        if lexeme.role is Role.NAME:
            calls = functions_first and len(lexeme.parts) == 1 and lexeme.parts[0].lower() in BEFORE_ALIASES
            known = {} if calls or aliases is None else aliases
            out.extend(_name(context, lexeme, scope, known, alias_first=i in alias_first))
            continue
        if lexeme.role is Role.SUBQUERY and not subqueries:
            context.refuse(not_maintained(lexeme.parts[0], context.place_of(lexeme.at)))
        elif lexeme.role is Role.CALL:
            _judge(context, lexemes, i)
        elif lexeme.role is Role.STAR and not _counts_rows(lexemes, i):
            context.refuse(not_maintained("* as an argument", context.place_of(lexeme.at)))
        out.append(lexeme)
    return tuple(out)


def scalar_of(context: Context, within: Range, scope: Scope) -> Lexemes:
    """Cut and resolve a scalar in one go."""
    return resolved(context, lexemes_of(context, within), scope)


def of_one_row(context: Context, lexemes: Lexemes, what: str) -> None:
    """Doubt an expression over single rows that calls an aggregate or a window function.

    Args:
        context: Where doubts go.
        lexemes: The expression.
        what: What it is.
    """
    for lexeme in lexemes:
        if lexeme.role is Role.WINDOW or (lexeme.role is Role.CALL and lexeme.parts[0] in AGGREGATES):
            name = f"{lexeme.parts[0]}()"
            context.doubt(name, f"{name} looks at several rows, {what} at one.", lexeme.at)


def _name(context: Context, lexeme: Lexeme, scope: Scope, aliases: Aliases, *, alias_first: bool) -> Lexemes:
    expression = aliases.get(context.fold(lexeme.parts[0]))
    if alias_first and expression is not None:
        return (*bracketed(expression, lexeme), *_fields(lexeme, 1))
    try:
        found = scope.resolve(lexeme.parts)
    except AmbiguousNameError:
        context.doubt(
            lexeme.text, f"{lexeme.text} could mean several columns.", lexeme.at, "Qualify it with the table's alias."
        )
        return (lexeme,)
    if found is not None:
        return (input_lexeme(found.column.internal, lexeme), *_fields(lexeme, found.parts))
    if expression is not None:
        return (*bracketed(expression, lexeme), *_fields(lexeme, 1))
    if len(lexeme.parts) == 1 and lexeme.parts[0].lower() in WITHOUT_BRACKETS:
        name = lexeme.parts[0].lower()
        context.refuse_value(lexeme.text, context.place_of(lexeme.at), NON_DETERMINISTIC[name])
    elif not scope.opaque:
        context.doubt(lexeme.text, f"{lexeme.text} could not be traced to a column.", lexeme.at)
    return (lexeme,)


def _fields(lexeme: Lexeme, taken: int) -> Lexemes:
    """Return the parts of a dotted name after the column: fields of a struct."""
    out: list[Lexeme] = []
    for text in lexeme.written[taken:]:
        out += [Lexeme(Role.OPERATOR, ".", lexeme.at, False), Lexeme(Role.LITERAL, text, lexeme.at, False)]
    return tuple(out)


def _judge(context: Context, lexemes: Lexemes, at: int) -> None:
    """Refuse a call of a function whose result is not known to depend on its arguments alone."""
    lexeme = lexemes[at]
    name, place = lexeme.parts[0], context.place_of(lexeme.at)
    empty = at + 2 < len(lexemes) and lexemes[at + 2].text == ")"
    if name in NON_DETERMINISTIC:
        context.refuse_value(f"{name}()", place, NON_DETERMINISTIC[name])
    elif name in NON_DETERMINISTIC_WITHOUT_ARGUMENTS and empty:
        context.refuse_value(f"{name}()", place, "depends on when it runs")
    elif name in GENERATORS:
        context.refuse(
            not_maintained(
                f"{name}()",
                place,
                f"{name}() gives several rows for one, which is maintained only as a whole select item with names.",
            )
        )
    elif name in context.functions:
        if not context.functions[name]:
            context.refuse_value(f"{name}()", place, "is declared as not deterministic")
    elif name in TIME_WINDOWS:
        context.refuse(not_maintained(f"{name}()", place))
    elif name not in _KNOWN:
        message = f"{lexeme.text}() is not one of Spark's own functions, so nothing is known about its result."
        context.refuse(not_maintained(f"{name}()", place, message, _DECLARE))


def _counts_rows(lexemes: Lexemes, at: int) -> bool:
    return (
        lexemes[at].text == "*"
        and at >= 2
        and lexemes[at - 2].role in (Role.CALL, Role.WINDOW)
        and lexemes[at - 2].parts[0] == "count"
        and at + 1 < len(lexemes)
        and lexemes[at + 1].text == ")"
    )
