"""Decides what is loaded together with a stream table that a user defines. Pure.

A table that belongs to a group is loaded with the whole group at one cut: it reads what the others have staged, and no
reader sees it beside what they were before. A member that cannot go along is left out, with what reads it, so that two
broken members can be mended one after the other; below such a member a table is loaded alone, from versions that agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.catalog import SchedulingState, Status, StreamTable
from headrace.definitions.details import Details, from_json
from headrace.names import TableName
from headrace.refresh.groups.grouping import Grouping


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The stream tables that are loaded and published together.

    Args:
        members: The stream tables, producers first.
        group: All of them where they are a whole group; () for another set, or one table.
        aligned: Whether the table is alone and reads, of what lies above it, versions that agree.
    """

    members: tuple[TableName, ...]
    group: tuple[TableName, ...] = ()
    aligned: bool = False


def load_plan(grouping: Grouping, name: TableName, left_alone: Collection[TableName] = ()) -> LoadPlan:
    """Return what is loaded together with a stream table.

    Args:
        grouping: The units, by the definitions that are to hold.
        name: The stream table.
        left_alone: Stream tables that cannot go along.
    """
    members, graph = grouping.members(name), grouping.graph
    own = graph.component(name) or (name,)
    stay = [member for member in members if member in left_alone and member not in own]
    stay += [member for member in graph.downstream(*stay) if member in members]
    if not stay:
        return LoadPlan(members, members if len(members) > 1 else ())
    if not set(own).isdisjoint(stay):
        return LoadPlan(own, aligned=len(own) == 1)
    return LoadPlan(tuple(member for member in members if member not in stay))


def held_up(
    tables: Mapping[TableName, StreamTable], scheduling: Mapping[TableName, SchedulingState]
) -> frozenset[TableName]:
    """Return stream tables that are not refreshed without being asked for.

    Args:
        tables: All stream tables.
        scheduling: What is known of their pauses and failures.
    """
    stopped = {name for name, table in tables.items() if table.status is Status.STOPPED}
    return frozenset(stopped | {name for name, state in scheduling.items() if state.held_up is not None})


def lose_columns(tables: Mapping[TableName, StreamTable], name: TableName, new: Details) -> frozenset[TableName]:
    """Return readers of a table whose columns a new definition drops or gives other types.

    Args:
        tables: All stream tables.
        name: The table.
        new: Its new definition.
    """
    there = {(column.name.lower(), column.type) for column in new.output}
    return frozenset(
        reader
        for reader, table in tables.items()
        if reader != name and name in table.sources
        for use in from_json(table.details).sources
        if use.name == name and not {(column.name.lower(), column.type) for column in use.columns} <= there
    )
