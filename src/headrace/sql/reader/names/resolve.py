"""Giving the names in a scalar their meaning, and judging the functions it calls."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.builtin_functions import AGGREGATES, GENERATORS, SCALARS, TIME_WINDOWS, WINDOWS
from headrace.sql.reader.functions.determinism import (
    NON_DETERMINISTIC,
    NON_DETERMINISTIC_WITHOUT_ARGUMENTS,
    WITHOUT_BRACKETS,
)
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope
from headrace.sql.reader.refusals import not_deterministic, not_maintained
from headrace.sql.reader.scalars.cut_scalar import cut, cut_window
from headrace.sql.reader.scalars.pieces import Piece, Pieces, Role, bracketed, input_piece
from headrace.sql.reader.scalars.struct_fields import with_field_names
from headrace.sql.reader.syntax.query_shape import Range

_SPECIAL = frozenset({"cast", "try_cast", "case", "in", "timestampadd", "timestampdiff", "timediff", "extract", "if"})

_KNOWN = SCALARS | AGGREGATES | WINDOWS | _SPECIAL

SPARKS_OWN = _KNOWN | TIME_WINDOWS | GENERATORS | NON_DETERMINISTIC.keys() | NON_DETERMINISTIC_WITHOUT_ARGUMENTS
"""Names that mean a function of Spark's."""

_DECLARE = "Declare it in the project's functions.py: then its body is known, and whether it is deterministic."

Aliases = Mapping[str, Pieces]
"""Select aliases, folded, with the expression each stands for."""


def pieces_of(context: Context, within: Range) -> Pieces:
    """Cut a scalar and take down what in it is never maintained."""
    pieces, refusals = cut(context.cursor, within)
    for refusal in refusals:
        context.refuse(refusal)
    return pieces


def window_pieces(context: Context, within: Range) -> Pieces:
    """Cut the definition of a named window."""
    pieces, refusals = cut_window(context.cursor, within)
    for refusal in refusals:
        context.refuse(refusal)
    return pieces


def resolved(
    context: Context,
    pieces: Pieces,
    scope: Scope,
    aliases: Aliases | None = None,
    alias_first: frozenset[int] = frozenset(),
    *,
    subqueries: bool = False,
) -> Pieces:
    """Replace every name by the column it means.

    Args:
        context: Where refusals go.
        pieces: The scalar.
        scope: Columns of the input; they win over aliases.
        aliases: Expressions of the same SELECT that may be referred to by alias.
        alias_first: Indices of the pieces for which an alias wins over a column.
        subqueries: Whether subqueries are read later; otherwise they are refused.
    """
    out: list[Piece] = []
    pieces = pieces if alias_first else with_field_names(pieces)
    for i, piece in enumerate(pieces):
        if piece.role is Role.NAME:
            out.extend(_name(context, piece, scope, aliases or {}, alias_first=i in alias_first))
            continue
        if piece.role is Role.SUBQUERY and not subqueries:
            context.refuse(not_maintained(piece.parts[0], context.place_of(piece.at)))
        elif piece.role is Role.CALL:
            _judge(context, pieces, i)
        elif piece.role is Role.STAR and not _counts_rows(pieces, i):
            context.refuse(not_maintained("* as an argument", context.place_of(piece.at)))
        out.append(piece)
    return tuple(out)


def scalar_of(context: Context, within: Range, scope: Scope) -> Pieces:
    """Cut and resolve a scalar in one go."""
    return resolved(context, pieces_of(context, within), scope)


def _name(context: Context, piece: Piece, scope: Scope, aliases: Aliases, *, alias_first: bool) -> Pieces:
    expression = aliases.get(context.fold(piece.parts[0]))
    if alias_first and expression is not None:
        return (*bracketed(expression, piece), *_fields(piece, 1))
    try:
        found = scope.resolve(piece.parts)
    except AmbiguousNameError:
        context.doubt(
            piece.text, f"{piece.text} could mean several columns.", piece.at, "Qualify it with the table's alias."
        )
        return (piece,)
    if found is not None:
        return (input_piece(found.column.internal, piece), *_fields(piece, found.parts))
    if expression is not None:
        return (*bracketed(expression, piece), *_fields(piece, 1))
    if len(piece.parts) == 1 and piece.parts[0].lower() in WITHOUT_BRACKETS:
        name = piece.parts[0].lower()
        context.refuse(not_deterministic(piece.text, context.place_of(piece.at), NON_DETERMINISTIC[name]))
    elif not scope.opaque:
        context.doubt(piece.text, f"{piece.text} could not be traced to a column.", piece.at)
    return (piece,)


def _fields(piece: Piece, taken: int) -> Pieces:
    """The parts of a dotted name after the column: fields of a struct."""
    out: list[Piece] = []
    for text in piece.texts[taken:]:
        out += [Piece(Role.OPERATOR, ".", piece.at, False), Piece(Role.LITERAL, text, piece.at, False)]
    return tuple(out)


def _judge(context: Context, pieces: Pieces, at: int) -> None:
    """Refuse a call of a function whose result is not known to depend on its arguments alone."""
    piece = pieces[at]
    name, place = piece.parts[0], context.place_of(piece.at)
    empty = at + 2 < len(pieces) and pieces[at + 2].text == ")"
    if name in NON_DETERMINISTIC:
        context.refuse(not_deterministic(f"{name}()", place, NON_DETERMINISTIC[name]))
    elif name in NON_DETERMINISTIC_WITHOUT_ARGUMENTS and empty:
        context.refuse(not_deterministic(f"{name}()", place, "depends on when it runs"))
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
            context.refuse(not_deterministic(f"{name}()", place, "is declared as not deterministic"))
    elif name in TIME_WINDOWS:
        context.refuse(not_maintained(f"{name}()", place))
    elif name not in _KNOWN:
        message = f"{piece.text}() is not one of Spark's own functions, so nothing is known about its result."
        context.refuse(not_maintained(f"{name}()", place, message, _DECLARE))


def _counts_rows(pieces: Pieces, at: int) -> bool:
    return (
        pieces[at].text == "*"
        and at >= 2
        and pieces[at - 2].role in (Role.CALL, Role.WINDOW)
        and pieces[at - 2].parts[0] == "count"
        and at + 1 < len(pieces)
        and pieces[at + 1].text == ")"
    )
