"""Shapes that the tables of all nodes share, and the details of their mirror. Pure.

All rows of a mirror have one shape, so the nodes' tables must agree in it: names and types of columns as mirrored, in
any order, and the key. A table that was altered on one node waits until it was altered on the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.sources.capture import Json, LandedTable

NODES, SHAPE = "nodes", "shape"
"""In a mirror's details: those of each node's table (None where it was dropped), and the shape of all."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of tables.

    Args:
        columns: Names and types of the mirror's columns.
        key: Names of the columns that identify rows on one node, sorted; None for a bag.
    """

    columns: frozenset[tuple[str, str]]
    key: tuple[str, ...] | None

    @classmethod
    def of(cls, table: LandedTable) -> Shape:
        """Return the shape of a node's part of a landing."""
        key = None if table.key is None else tuple(sorted(table.key))
        return cls(frozenset((c.name, c.type) for c in table.columns), key)

    @classmethod
    def kept(cls, details: Json) -> Shape:
        """Return the shape of a mirror."""
        kept = details[SHAPE]
        key = None if kept["key"] is None else tuple(kept["key"])
        return cls(frozenset((name, type_) for name, type_ in kept["columns"]), key)

    def as_json(self) -> dict[str, Any]:
        """Return it as the catalog keeps it."""
        key = None if self.key is None else list(self.key)
        return {"columns": sorted(map(list, self.columns)), "key": key}

    def difference(self, other: Shape) -> str:
        """Describe how another shape differs, for an error."""
        mine, others = dict(self.columns), dict(other.columns)
        said = [f"it has no column {name}" for name in sorted(mine.keys() - others.keys())]
        said += [f"it also has a column {name}" for name in sorted(others.keys() - mine.keys())]
        said += [
            f"its column {name} is {others[name]}, not {mine[name]}"
            for name in sorted(mine.keys() & others.keys())
            if mine[name] != others[name]
        ]
        if self.key != other.key:
            said.append(f"its rows are known by {_named(other.key)}, not {_named(self.key)}")
        return "; ".join(said)


def _named(key: tuple[str, ...] | None) -> str:
    return "no key" if key is None else f"({', '.join(key)})"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A node whose table has not the shape that the others have.

    Args:
        node: The node.
        other: A node that has it otherwise.
        difference: How the table of `node` differs from that of `other`, in words.
    """

    node: str
    other: str
    difference: str


def misfits(now: Mapping[str, Shape], before: Shape | None, waiting: Collection[str]) -> tuple[Misfit, ...]:
    """Return the nodes that must wait, because not all have a new shape.

    Args:
        now: Each node's shape after this landing.
        before: The mirror's shape; None where it is new.
        waiting: Nodes that are held back anyway, which keep their former shape.
    """
    shapes = set(now.values())
    if len(shapes) <= 1:
        return ()
    settled = before
    if settled is None:  # a first snapshot: the first node is the model
        settled = next(iter(now.values()))
    model = next((n for n, shape in now.items() if shape == settled), None)
    found = []
    for node, shape in now.items():
        if shape == settled or node in waiting:
            continue
        other = model or next(n for n, of in now.items() if of != shape)
        found.append(Misfit(node, other, now[other].difference(shape)))
    return tuple(found)


def otherwise_renamed(parts: Mapping[str, LandedTable]) -> tuple[str, ...]:
    """Return the nodes whose rows stay on which other columns have new names than on most.

    A column that was renamed on one node and on another dropped, and added under the new name, has its values there and
    none here, while the mirror has one column for both.

    Args:
        parts: The last part of each node, of tables of one shape.
    """
    renamed = {node: frozenset(part.renamed.items()) for node, part in parts.items() if part.reshaped}
    most = Counter(renamed.values()).most_common(1)
    return tuple(node for node, of in renamed.items() if of != most[0][0])


def merged_details(
    former: Json | None, now: Mapping[str, Json | None], shape: Shape, key: Collection[str]
) -> dict[str, Any]:
    """Return a mirror's details.

    Args:
        former: What the catalog keeps; None before the first landing.
        now: Each node's details; None where its table is gone.
        shape: The shape of all.
        key: Columns that no two rows of the mirror agree in.
    """
    kept = {name: of for name, of in (former or {}).items() if name == "key_since"}
    return {NODES: dict(now), SHAPE: shape.as_json(), "key": list(key), **kept}
