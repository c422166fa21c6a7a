"""Units of refresh, single names or groups, and the graph between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

from headrace.graph.dag import Dag, Name
from headrace.graph.diamonds import Diamond


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


def atomic_groups(found: Iterable[Diamond[Name]]) -> list[set[Name]]:
    """Return the groups that diamonds need, each with its bottom; overlapping ones merged.

    Args:
        found: The diamonds that are to be kept together.
    """
    return merged({*d.between, d.bottom} for d in found)


def merged(groups: Iterable[set[Name]]) -> list[set[Name]]:
    """Return groups with a common name become one, transitively."""
    apart: list[set[Name]] = []
    for group in groups:
        joined = set(group)
        rest = []
        for other in apart:
            if joined & other:
                joined |= other
            else:
                rest.append(other)
        apart = [*rest, joined]
    return apart


def units(dag: Dag[Name], names: Iterable[Name], groups: Iterable[set[Name]]) -> Units[Name]:
    """Cut names into units.

    A name that lies on a way between two members belongs to their group, or the group would wait for itself. So do the
    members of a cycle to one.

    Args:
        dag: The whole graph.
        names: The names that are refreshed; the others are sources.
        groups: Names that belong together; sources among them are left out.
    """
    wanted = set(names)
    together = merged({name for name in group if name in wanted} for group in groups)
    while True:
        unit_of = _called(dag, wanted, together)
        reads = _contracted(dag, wanted, unit_of)
        circle = set(Dag(reads).cycle())
        if not circle:
            break
        together = merged([*together, {name for name in wanted if unit_of[name] in circle}])
    members: dict[Name, list[Name]] = {}
    for name in dag.order(wanted):
        members.setdefault(unit_of[name], []).append(name)
    return Units({unit: tuple(inside) for unit, inside in members.items()}, unit_of, Dag(reads))


def _called(dag: Dag[Name], wanted: set[Name], together: list[set[Name]]) -> dict[Name, Name]:
    unit_of = {name: name for name in wanted}
    for group in together:
        last = dag.order(group)[-1] if group else None
        unit_of |= {name: last for name in group if last is not None}
    return unit_of


def _contracted(dag: Dag[Name], wanted: set[Name], unit_of: Mapping[Name, Name]) -> dict[Name, set[Name]]:
    reads: dict[Name, set[Name]] = {unit: set() for unit in unit_of.values()}
    for name in wanted:
        reads[unit_of[name]] |= {unit_of[p] for p in dag.producers(name) if p in wanted and unit_of[p] != unit_of[name]}
    return reads
