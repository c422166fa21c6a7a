"""How long a pipeline takes: the critical path, and for each name how much is still to come behind it."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.graph.dag import Dag, Name


def remaining(dag: Dag[Name], seconds: Mapping[Name, float]) -> dict[Name, float]:
    """For each name, the seconds of the longest way from its beginning to the end of a last consumer.

    Starting the name with most behind it first is the critical-path list scheduling of Graham (1969): never worse than
    twice the best order, and in practice close to it.

    Args:
        dag: The graph.
        seconds: How long each name takes; nothing for those that are missing.
    """
    found: dict[Name, float] = {}
    for name in reversed(dag.order()):
        after = max((found[consumer] for consumer in dag.consumers(name)), default=0.0)
        found[name] = seconds.get(name, 0.0) + after
    return found


def critical_path(dag: Dag[Name], seconds: Mapping[Name, float]) -> tuple[Name, ...]:
    """The names on the longest way through the graph, producers first; () for an empty graph."""
    left = remaining(dag, seconds)
    path: list[Name] = []
    choices = tuple(name for name in dag.names if not dag.producers(name))
    while choices:
        path.append(max(choices, key=lambda name: (left[name], str(name))))
        choices = dag.consumers(path[-1])
    return tuple(path)
