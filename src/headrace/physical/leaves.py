"""Leaves of a plan, each bound to a table expression or a temporary view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.relations import Moment, Scan, Stored
from headrace.names import TableName

LeafKey = str | tuple[TableName, Moment]
"""The name of what is stored, or a source at a moment."""


@dataclass(frozen=True, slots=True)
class View:
    """A temporary view, filled by a stage of the plan.

    Args:
        name: Its name in Spark, unquoted.
    """

    name: str


Leaves = Mapping[LeafKey, str | View]
"""From leaves to table expressions or views."""


def key_of(leaf: Scan | Stored) -> LeafKey:
    """Return the key of a leaf in `Leaves`."""
    return leaf.name if isinstance(leaf, Stored) else (leaf.source, leaf.moment)
