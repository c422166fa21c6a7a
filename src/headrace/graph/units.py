"""Units of refresh, single names or groups, and the graph between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from headrace.graph.dag import Dag, Name


@dataclass(frozen=True, slots=True)
class Units(Generic[Name]):
    """A partition of names into units.

    Args:
        members: By unit, its names, producers first. A unit is called after the last of them.
        unit_of: By name, its unit.
        dag: Which unit reads which; sources are not in it.
    """

    members: Mapping[Name, tuple[Name, ...]]
    unit_of: Mapping[Name, Name]
    dag: Dag[Name]


def merged(groups: Iterable[Iterable[Name]]) -> list[set[Name]]:
    """Return groups with a common name become one, transitively."""
    place: dict[Name, int] = {}
    joined: dict[int, set[Name]] = {}
    for number, group in enumerate(groups):
        names = set(group)
        met = {place[name] for name in names if name in place}
        largest = max(met, key=lambda other: len(joined[other]), default=number)
        new = names.union(*(joined.pop(other) for other in met if other != largest))
        place |= dict.fromkeys(new, largest)
        joined.setdefault(largest, set()).update(new)
    return list(joined.values())


def units(dag: Dag[Name], names: Iterable[Name], groups: Iterable[Iterable[Name]]) -> Units[Name]:
    """Cut names into units.

    A name that lies on a way between two members belongs to their group, or the group would wait for itself. So do the
    members of a cycle to one.

    Args:
        dag: The whole graph.
        names: The names that are refreshed; the others are sources.
        groups: Names that belong together; sources among them are left out.
    """
    wanted = set(names)
    inside = [name for name in dag.order() if name in wanted]
    together = merged([name for name in group if name in wanted] for group in groups)
    unit_of = _called(inside, together)
    whole = dag.contracted(unit_of)
    if whole.cycle():
        circles: dict[Name, set[Name]] = {}
        for name, unit in unit_of.items():
            if circle := whole.component(unit):
                circles.setdefault(circle[0], set()).add(name)
        unit_of = _called(inside, merged([*together, *circles.values()]))
        whole = dag.contracted(unit_of)
    members: dict[Name, list[Name]] = {}
    for name in inside:
        members.setdefault(unit_of[name], []).append(name)
    return Units({unit: tuple(own) for unit, own in members.items()}, unit_of, whole)


def tasks(dag: Dag[Name], names: Iterable[Name]) -> Dag[Name]:
    """Return what the names of a unit are computed by, and which of these reads which.

    A name is a task; the names of a cycle are one together, which is called after the last of them.

    Args:
        dag: The whole graph.
        names: The names of a unit.
    """
    wanted = set(names)
    task_of = {name: (dag.component(name) or (name,))[-1] for name in wanted}
    reads: dict[Name, set[Name]] = {task: set() for task in task_of.values()}
    for name, task in task_of.items():
        reads[task] |= {task_of[p] for p in dag.producers(name) if p in wanted and task_of[p] != task}
    return Dag(reads)


def units_read(dag: Dag[Name], unit_of: Mapping[Name, Name], names: Iterable[Name]) -> frozenset[Name]:
    """Return the other units that some names of a unit read.

    Args:
        dag: The whole graph.
        unit_of: By name, its unit.
        names: The names, all of one unit.
    """
    wanted = tuple(names)
    own = {unit_of[name] for name in wanted}
    return frozenset(unit_of[p] for name in wanted for p in dag.producers(name) if p in unit_of) - own


def _called(inside: Sequence[Name], together: Iterable[set[Name]]) -> dict[Name, Name]:
    """Return by name its unit, which is called after its last member."""
    number = {name: i for i, group in enumerate(together) for name in group}
    last = {number[name]: name for name in inside if name in number}
    return {name: last[number[name]] if name in number else name for name in inside}
