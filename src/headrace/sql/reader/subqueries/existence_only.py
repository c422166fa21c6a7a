"""Strips queries of which only existence matters of everything that does not decide it.

ORDER BY never does; LIMIT does not while it lets a row through and nothing is passed over; GROUP BY does not, since
each group has a row, as long as HAVING drops none. An aggregate without GROUP BY has a row in any case, which is
another question, so it stays.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.sql.reader.context import Context
from headrace.sql.reader.functions.builtin_functions import GENERATORS
from headrace.sql.reader.names.resolve import lexemes_of
from headrace.sql.reader.scalars.lexemes import Role
from headrace.sql.reader.select.aggregates import has_aggregate
from headrace.sql.reader.syntax.query_shape import Extra, Query, Select
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
    asked = any(has_aggregate(each) for each in lexemes)
    return not asked and not any(p.role is Role.CALL and p.parts[0] in GENERATORS for each in lexemes for p in each)


def _only_groups(context: Context, body: Select) -> bool:
    """Return whether it has a plain GROUP BY, and nothing that drops or adds rows afterwards."""
    group = body.group
    if group is None or not group.items or group.extras or body.having is not None or body.extras:
        return False
    lexemes = [lexemes_of(context, within) for within in (*group.items, *body.items)]
    # GROUP BY () has a row over no rows, and a generator may have none
    empty = any([lexeme.text for lexeme in each] == ["(", ")"] for each in lexemes)
    return not empty and not any(p.role is Role.CALL and p.parts[0] in GENERATORS for each in lexemes for p in each)
