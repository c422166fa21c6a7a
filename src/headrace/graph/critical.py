"""The critical path of a pipeline, and for each name the longest path after it.

The members of a cyclic component are refreshed together, so they take the time of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from headrace.graph.dag import Dag, Name


def remaining(
    dag: Dag[Name], seconds: Mapping[Name, float], late: Mapping[Name, float] = MappingProxyType({})
) -> dict[Name, float]:
    """Return, for each name, the seconds of the longest path from it to a last consumer.

    Starting the name with most behind it first is the critical-path list scheduling of Graham (1969): never worse than
    twice the best order, and in practice close to it. With `late` it is the rule of the least slack, for which nothing
    that is short waits for ever behind what is long.

    Args:
        dag: The graph.
        seconds: How long each name takes; nothing for those that are missing.
        late: By how much names should have ended already; it lengthens the ways that end there.
    """
    found: dict[Name, float] = {}
    for part in reversed(dag.parts):
        after = max((found[consumer] for consumer in _behind(dag, part)), default=0.0)
        after = max(after, *(late.get(name, 0.0) for name in part))
        found |= dict.fromkeys(part, sum(seconds.get(name, 0.0) for name in part) + after)
    return found


def remaining_of_tasks(
    units: Dag[Name],
    inside: Mapping[Name, Dag[Name]],
    seconds: Mapping[Name, float],
    late: Mapping[Name, float] = MappingProxyType({}),
    outside: Mapping[Name, Collection[Name]] = MappingProxyType({}),
) -> dict[Name, float]:
    """Return, for each task of units, the seconds of the longest path behind it.

    What reads a unit waits until all its tasks are done.

    Args:
        units: The units, and which reads which.
        inside: By unit, its tasks, and which reads which; a unit that is missing is one task of the same name.
        seconds: How long each task takes.
        late: By how much units should have ended already.
        outside: By task, the other units that it reads; one that is missing reads all that its unit does.
    """
    found: dict[Name, float] = {}
    behind: dict[Name, float] = {}
    for unit in reversed(units.order()):
        after = max(behind.get(unit, 0.0), late.get(unit, 0.0))
        left = remaining(inside[unit], seconds) if unit in inside else {unit: seconds.get(unit, 0.0)}
        for task, own in left.items():
            found[task] = own + after
            for above in outside.get(task, units.producers(unit)):
                behind[above] = max(behind.get(above, 0.0), found[task])
    return found


def critical_path(dag: Dag[Name], seconds: Mapping[Name, float]) -> tuple[Name, ...]:
    """Return the names on the longest way through the graph, producers first.

    () for an empty graph.
    """
    left = remaining(dag, seconds)
    path: list[Name] = []
    choices = dag.roots
    while choices:
        first = max(choices, key=lambda name: (left[name], str(name)))
        part = dag.component(first) or (first,)
        path += part
        choices = _behind(dag, part)
    return tuple(path)


def _behind(dag: Dag[Name], part: tuple[Name, ...]) -> tuple[Name, ...]:
    """Return the consumers of a component from outside of it."""
    return tuple(consumer for name in part for consumer in dag.consumers(name) if consumer not in part)
