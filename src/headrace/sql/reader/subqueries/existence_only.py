"""Strips queries of which only existence matters of everything that does not decide it.

ORDER BY never does; LIMIT does not while it lets a row through and nothing is passed over; GROUP BY does not, since
each group has a row, as long as HAVING drops none; nor does what is selected, unless it gives several rows for one, or
is a span of time, which rows without a time are not in. An aggregate without GROUP BY has a row in any case, which is
another question, so it stays.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.builtin_functions import GENERATORS
from headrace.sql.reader.names.resolve import lexemes_of, window_lexemes
from headrace.sql.reader.scalars.lexemes import Role
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.syntax.query_shape import SPANS, Extra, Query, Select
from headrace.sql.reader.syntax.tokens import counts


def only_asked_for_rows(context: Context, query: Query) -> Query:
    """Return the query of EXISTS without what does not decide whether it has rows."""
    cut = any(extra.construct == "OFFSET" for extra in query.extras)
    extras = tuple(extra for extra in query.extras if cut or not (extra.harmless or _lets_through(context, extra)))
    body = query.body
    if isinstance(body, Select) and extras == () and (_only_rows(context, body) or _only_groups(context, body)):
        body = replace(body, group=None, items=(), distinct=False)
    return replace(query, body=body, extras=extras)


def _lets_through(context: Context, extra: Extra) -> bool:
    """Return whether it is a LIMIT of at least one row."""
    tokens = context.cursor.tokens[extra.range[0] : extra.range[1]]
    return extra.construct == "LIMIT" and len(tokens) == 1 and counts(tokens[0].text) and int(tokens[0].text) > 0


def _only_rows(context: Context, body: Select) -> bool:
    """Return whether it has rows exactly where WHERE leaves any."""
    if body.group is not None or body.having is not None or body.extras or body.source is None:
        return False
    lexemes = [lexemes_of(context, within) for within in body.items]
    return not any(map(has_aggregate, lexemes)) and not decides_rows(context, body)


def _only_groups(context: Context, body: Select) -> bool:
    """Return whether it has a plain GROUP BY, and nothing that drops or adds rows afterwards."""
    group = body.group
    if group is None or not group.items or group.extras or body.having is not None or body.extras:
        return False
    lexemes = [lexemes_of(context, within) for within in group.items]
    # GROUP BY () has a row over no rows
    empty = any([lexeme.text for lexeme in each] == ["(", ")"] for each in lexemes)
    return not empty and not decides_rows(context, body)


def decides_rows(context: Context, body: Select) -> bool:
    """Return whether what a block selects or groups by gives it more rows, or leaves some out."""
    written = [*body.items, *(body.group.items if body.group is not None else ())]
    lexemes = [lexemes_of(context, within) for within in written]
    lexemes += [window_lexemes(context, within) for _, within in body.windows]
    return any(p.role is Role.CALL and p.parts[0] in GENERATORS | SPANS for each in lexemes for p in each)
