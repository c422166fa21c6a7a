"""Watermarks: which tables wait as sources below them are complete to different moments."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable

from headrace.catalog import WatermarkGroup
from headrace.graph.dag import Dag
from headrace.names import TableName


def distance(group: WatermarkGroup) -> dt.timedelta | None:
    """Return how far the watermarks of a group are apart; None while some source has none."""
    marks = [mark for mark in group.marks.values() if mark is not None]
    return max(marks) - min(marks) if marks and len(marks) == len(group.marks) else None


def agrees(group: WatermarkGroup) -> bool:
    """Return whether the watermarks of a group are within its tolerance."""
    apart = distance(group)
    return apart is not None and apart <= group.tolerance


def below(group: WatermarkGroup, graph: Dag[TableName]) -> tuple[TableName, ...]:
    """Return the tables below two or more of a group's sources, producers first.

    A table over one of them alone has nothing that could disagree.
    """
    reached = Counter(name for source in group.marks if source in graph for name in graph.downstream(source))
    return graph.order(name for name, count in reached.items() if count > 1)


def waiting(
    groups: Iterable[WatermarkGroup], graph: Dag[TableName], tables: Collection[TableName]
) -> dict[TableName, WatermarkGroup]:
    """Return the stream tables that must wait, each with a group that does not agree."""
    found: dict[TableName, WatermarkGroup] = {}
    for group in groups:
        if not agrees(group):
            found |= {name: group for name in below(group, graph) if name in tables}
    return found
