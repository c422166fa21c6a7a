"""Cuts units into tasks: one for each table of a group, or cycle in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.graph.dag import Dag
from headrace.graph.units import tasks, units_read
from headrace.names import TableName
from headrace.refresh.groups.grouping import Grouping


@dataclass(frozen=True, slots=True)
class UnitTasks:
    """The tasks of all units.

    Args:
        inside: By unit of several tasks, these, and which reads which.
        tables: By task, its stream tables.
        pools: By task, the pools that it counts against: those of its tables.
        outside: By task, the other units that it reads.
    """

    inside: Mapping[TableName, Dag[TableName]]
    tables: Mapping[TableName, tuple[TableName, ...]]
    pools: Mapping[TableName, tuple[str, ...]]
    outside: Mapping[TableName, frozenset[TableName]]

    def of(self, unit: TableName) -> dict[TableName, tuple[TableName, ...]]:
        """Return the tasks of a unit, each with its stream tables."""
        names = self.inside[unit].order() if unit in self.inside else (unit,)
        return {task: self.tables[task] for task in names}

    def pools_of(self, unit: TableName) -> frozenset[str]:
        """Return the pools that the tasks of a unit count against."""
        return frozenset(pool for task in self.of(unit) for pool in self.pools[task])


def unit_tasks(grouping: Grouping) -> UnitTasks:
    """Return the tasks of all units."""
    inside, tables = dict[TableName, Dag[TableName]](), dict[TableName, tuple[TableName, ...]]()
    for unit, members in grouping.units.members.items():
        tables |= {(part := grouping.graph.component(name) or (name,))[-1]: part for name in members}
        if len(members) > 1 and len(found := tasks(grouping.graph, members)) > 1:
            inside[unit] = found
    pools = {
        task: tuple(sorted({grouping.options[name].pool for name in names} - {""})) for task, names in tables.items()
    }
    outside = {task: units_read(grouping.graph, grouping.units.unit_of, names) for task, names in tables.items()}
    return UnitTasks(inside, tables, pools, outside)
