"""Says GROUP BY ALL in other words, so that who asks for the keys need not know of it.

Where FROM has a column of that name it means the column. Otherwise it groups by the items that call no aggregate
(`grouped_by_all`); where each one calls one, nothing is grouped by, and there is one row over no rows, too.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.sql.reader.context import Context
from headrace.sql.reader.names.resolve import lexemes_of
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.select.aggregates import grouped_by_all, has_aggregate
from headrace.sql.reader.syntax.query_shape import Group, Select


def without_all(context: Context, select: Select, scope: Scope) -> Select:
    """Return a block without GROUP BY ALL, unless that groups by something.

    Args:
        context: The text.
        select: The block.
        scope: The columns of its FROM.
    """
    group = select.group
    if group is None or not group.all:
        return select
    if scope.knows(("all",)):
        at = group.at + len(("GROUP", "BY"))
        return replace(select, group=Group(((at, at + 1),), False, (), group.at))
    items = [lexemes_of(context, within) for within in select.items]
    if any(map(grouped_by_all, items)):
        return select
    # windows alone do not make an aggregate of a block
    return replace(select, group=None if any(map(has_aggregate, items)) else replace(group, all=False))
