"""ORDER BY … LIMIT … OFFSET: maintained where it counts in plain numbers.

It orders by columns of the result, or by others of the rows that the result is made of: these are carried along until
the rows are cut off. Without ORDER BY a LIMIT chooses among several rows as it likes; of one row at most it leaves what
there is. Whether there may be several is judged when keys of sources are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.properties.keys import one_row_at_most
from headrace.algebra.relations import Filter, Project, Relation, SortKey, TopK
from headrace.algebra.scalar import FALSE, column
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context, Output
from headrace.sql.reader.names.resolve import window_lexemes
from headrace.sql.reader.refusals import not_maintained
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, is_integer, split_arguments, unbracketed
from headrace.sql.reader.select.order_clauses import note_cut
from headrace.sql.reader.select.windows import directed
from headrace.sql.reader.syntax.query_shape import Extra, Query
from headrace.sql.reader.syntax.tokens import counts

Find = Callable[[Lexemes], int | None]
"""The position of the result's column that an expression is."""


def limited(context: Context, query: Query, output: Output, find: Find) -> Output:
    """Return the first rows of a query's result.

    The result itself for a query without LIMIT and OFFSET.

    Args:
        context: Where refusals go.
        query: The query.
        output: Its result before LIMIT.
        find: Finds what is no name and no number among the columns.
    """
    extras, cuts = _cuts(query)
    if not cuts:
        return output
    numbers = {extra.construct: _number(context, extra) for extra in cuts}
    order = _order(context, extras.get("ORDER BY"), output, find)
    if order is None or None in numbers.values():
        for extra in cuts:
            message = f"{extra.construct} is maintained with plain numbers, and with an ORDER BY of columns."
            context.refuse(not_maintained(extra.construct, context.place(extra.at), message))
        return _shown(output)
    note_cut(context, extras, cuts, output)
    cut = TopK(output.relation, order, numbers.get("LIMIT"), numbers.get("OFFSET") or 0, context.place(cuts[0].at))
    return _shown(replace(output, relation=without_effect(cut) or cut))


def without_effect(cut: TopK, *, single: bool = False) -> Relation | None:
    """Return what a cut leaves, if that needs no order: nothing, or one row at most.

    Args:
        cut: The cut.
        single: Whether keys of sources, or something else, say that there is one row at most.

    Returns:
        None where rows are chosen.
    """
    if cut.limit == 0:
        return Filter(cut.input, FALSE)
    if cut.order or not (single or one_row_at_most(cut.input)):
        return None
    return Filter(cut.input, FALSE) if cut.offset else cut.input


def _shown(output: Output) -> Output:
    """Return the result without what only ORDER BY reads."""
    if not output.hidden:
        return output
    pairs = zip(output.relation.columns, output.names, strict=True)
    kept = [(column, name) for column, name in pairs if column not in output.hidden]
    relation = Project(output.relation, identity(tuple(column for column, _ in kept)))
    return replace(output, relation=relation, names=tuple(name for _, name in kept))


def ordering(context: Context, query: Query) -> tuple[Lexemes, ...]:
    """Return the ORDER BY expressions of a query with a LIMIT, else none."""
    extras, cuts = _cuts(query)
    return tuple(expression for expression, _ in _ordered(context, extras.get("ORDER BY"))) if cuts else ()


def _cuts(query: Query) -> tuple[dict[str, Extra], list[Extra]]:
    extras = {extra.construct: extra for extra in query.extras}
    return extras, [extras[name] for name in ("LIMIT", "OFFSET") if name in extras]


def _number(context: Context, extra: Extra) -> int | None:
    tokens = context.cursor.tokens[extra.range[0] : extra.range[1]]
    return int(tokens[0].text) if len(tokens) == 1 and counts(tokens[0].text) else None


def _order(context: Context, extra: Extra | None, output: Output, find: Find) -> tuple[SortKey, ...] | None:
    if extra is None:
        return ()
    keys = _ordered(context, extra)
    places = [_place(context, expression, output, find) for expression, _ in keys]
    names = output.relation.columns
    if not places or any(place is None or place >= len(names) for place in places):
        return None
    pairs = zip(places, keys, strict=True)
    return tuple(SortKey(column(names[place]), direction) for place, (_, direction) in pairs if place is not None)


def _ordered(context: Context, extra: Extra | None) -> list[tuple[Lexemes, str]]:
    """Return the expressions of ORDER BY, each with its direction."""
    if extra is None:
        return []
    lexemes = window_lexemes(context, (extra.range[0] - 2, extra.range[1]))[2:]
    return [(unbracketed(by), direction) for by, direction in map(directed, split_arguments(lexemes))]


def _place(context: Context, lexemes: Lexemes, output: Output, find: Find) -> int | None:
    if is_integer(lexemes):
        return int(lexemes[0].text) - 1 if int(lexemes[0].text) else None
    if len(lexemes) == 1 and lexemes[0].role is Role.NAME and len(lexemes[0].parts) == 1:
        wanted = context.fold(lexemes[0].parts[0])
        fitting = [i for i, name in enumerate(output.names) if name is not None and context.fold(name) == wanted]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return find(lexemes)
