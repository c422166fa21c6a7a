"""Places nodes of a graph in columns by distance from the sources, with few crossings.

The method is Sugiyama's (1981): long edges are cut at the columns that they pass, columns are sorted by the mean place
of neighbours, sweep after sweep, and heights are pulled towards neighbours while nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from headrace.graph.dag import Dag

Name = TypeVar("Name", bound=Hashable)

WIDTH, HEIGHT, COLUMN_GAP, ROW_GAP = 210.0, 52.0, 70.0, 26.0
SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Layout(Generic[Name]):
    """The places of boxes and lines.

    Args:
        places: Left upper corner of each name's box.
        edges: For each pair of producer and consumer the points that its line passes.
        width: Of the whole.
        height: Of the whole.
    """

    places: Mapping[Name, tuple[float, float]]
    edges: Mapping[tuple[Name, Name], Sequence[tuple[float, float]]]
    width: float
    height: float


def layout(dag: Dag[Name]) -> Layout[Name]:
    """Return where names and edges are drawn."""
    columns: list[list[object]] = [list(names) for names in dag.levels()]
    level = {name: number for number, names in enumerate(dag.levels()) for name in names}
    chains: dict[tuple[Name, Name], list[object]] = {}
    neighbours: dict[object, list[object]] = {name: [] for name in dag.names}
    for producer, consumer in dag.edges:
        chain: list[object] = [producer]
        for passed in range(level[producer] + 1, level[consumer]):
            bend = (passed, producer, consumer)
            columns[passed].append(bend)
            neighbours[bend] = []
            chain.append(bend)
        chain.append(consumer)
        chains[producer, consumer] = chain
        for one, other in pairwise(chain):
            neighbours[one].append(other)
            neighbours[other].append(one)
    _sort(columns, neighbours)
    heights = _heights(columns, neighbours)
    places = {name: (_left(level[name]), heights[name] - HEIGHT / 2) for name in dag.names}
    edges = {edge: tuple(_points(chain, level, heights)) for edge, chain in chains.items()}
    width = _left(len(columns)) - COLUMN_GAP if columns else 0.0
    return Layout(places, edges, width, max((y + HEIGHT for _, y in places.values()), default=0.0))


def _left(column: int) -> float:
    return column * (WIDTH + COLUMN_GAP)


def _points(
    chain: Sequence[object], level: Mapping[Name, int], heights: Mapping[object, float]
) -> list[tuple[float, float]]:
    producer, consumer = chain[0], chain[-1]
    points = [(_left(level[producer]) + WIDTH, heights[producer])]  # type: ignore[index]
    for bend in chain[1:-1]:
        left = _left(bend[0])  # type: ignore[index]
        points += [(left, heights[bend]), (left + WIDTH, heights[bend])]
    return [*points, (_left(level[consumer]), heights[consumer])]  # type: ignore[index]


def _sort(columns: list[list[object]], neighbours: Mapping[object, list[object]]) -> None:
    """Sort columns by the mean place of their neighbours, forwards and backwards."""
    place = {node: float(number) for column in columns for number, node in enumerate(column)}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            inside = set(column)
            means = {}
            for node in column:
                beside = [place[other] for other in neighbours[node] if other not in inside]
                means[node] = sum(beside) / len(beside) if beside else place[node]
            column.sort(key=lambda node: (means[node], str(node)))
            place.update({node: float(number) for number, node in enumerate(column)})


def _heights(columns: list[list[object]], neighbours: Mapping[object, list[object]]) -> dict[object, float]:
    """Return the middle of each node, from the top."""
    found: dict[object, float] = {}
    for column in columns:
        y = 0.0
        for node in column:
            found[node] = y + _size(node) / 2
            y += _size(node) + ROW_GAP
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            _pull(column, neighbours, found)
    top = min((found[node] - _size(node) / 2 for node in found), default=0.0)
    return {node: y - top for node, y in found.items()}


def _pull(column: list[object], neighbours: Mapping[object, list[object]], found: dict[object, float]) -> None:
    """Move the nodes of a column towards their neighbours, in their order, without overlaps."""
    inside = set(column)
    wanted = []
    for node in column:
        beside = [found[other] for other in neighbours[node] if other not in inside]
        wanted.append(sum(beside) / len(beside) if beside else found[node])
    placed: list[float] = []
    for number, node in enumerate(column):
        least = placed[-1] + (_size(column[number - 1]) + _size(node)) / 2 + ROW_GAP if placed else wanted[0]
        placed.append(max(wanted[number], least))
    shift = sum(p - w for p, w in zip(placed, wanted, strict=True)) / len(placed) if placed else 0.0
    found.update({node: y - shift for node, y in zip(column, placed, strict=True)})


def _size(node: object) -> float:
    return 8.0 if isinstance(node, tuple) and len(node) == 3 and isinstance(node[0], int) else HEIGHT
