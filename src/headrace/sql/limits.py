"""ORDER BY … LIMIT … OFFSET: maintained where it orders by columns of the result and counts in plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.relations import SortKey, TopK
from headrace.algebra.scalar import column
from headrace.sql.context import Context, Output
from headrace.sql.pieces import Pieces, Role, is_integer, split_arguments
from headrace.sql.refusals import not_maintained
from headrace.sql.resolving import window_pieces
from headrace.sql.shape import Extra, Query
from headrace.sql.windows import directed

Find = Callable[[Pieces], int | None]
"""The position of the result's column that an expression is."""


def limited(context: Context, query: Query, output: Output, find: Find) -> Output:
    """The first rows of a query's result; the result itself for a query without LIMIT and OFFSET.

    Args:
        context: Where refusals go.
        query: The query.
        output: Its result before LIMIT.
        find: Finds what is no name and no number among the columns.
    """
    extras = {extra.construct: extra for extra in query.extras}
    cuts = [extras[name] for name in ("LIMIT", "OFFSET") if name in extras]
    if not cuts:
        return output
    numbers = {extra.construct: _number(context, extra) for extra in cuts}
    order = _order(context, extras.get("ORDER BY"), output, find)
    if order is None or None in numbers.values():
        for extra in cuts:
            message = f"{extra.construct} is maintained with plain numbers, after an ORDER BY of columns of the result."
            context.refuse(not_maintained(extra.construct, context.place(extra.at), message))
        return output
    place = context.place(cuts[0].at)
    cut = TopK(output.relation, order, numbers.get("LIMIT"), numbers.get("OFFSET") or 0, place)
    return replace(output, relation=cut)


def _number(context: Context, extra: Extra) -> int | None:
    tokens = context.cursor.tokens[extra.range[0] : extra.range[1]]
    return int(tokens[0].text) if len(tokens) == 1 and tokens[0].text.isdigit() else None


def _order(context: Context, extra: Extra | None, output: Output, find: Find) -> tuple[SortKey, ...] | None:
    if extra is None:
        return None
    pieces = window_pieces(context, (extra.range[0] - 2, extra.range[1]))[2:]
    keys = [directed(each) for each in split_arguments(pieces)]
    places = [_place(context, expression, output, find) for expression, _ in keys]
    names = output.relation.columns
    if not places or any(place is None or place >= len(names) for place in places):
        return None
    pairs = zip(places, keys, strict=True)
    return tuple(SortKey(column(names[place]), direction) for place, (_, direction) in pairs if place is not None)


def _place(context: Context, pieces: Pieces, output: Output, find: Find) -> int | None:
    if is_integer(pieces):
        return int(pieces[0].text) - 1 if int(pieces[0].text) else None
    if len(pieces) == 1 and pieces[0].role is Role.NAME and len(pieces[0].parts) == 1:
        wanted = context.fold(pieces[0].parts[0])
        fitting = [i for i, name in enumerate(output.names) if name is not None and context.fold(name) == wanted]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return find(pieces)
