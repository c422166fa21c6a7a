"""New definitions of stream tables that a refresh publishes with their contents, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.catalog import Definition
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.refresh.held_leases import Held


@dataclass(frozen=True, slots=True)
class Redefinition:
    """A new definition of a stream table; its new stored tables are in `staging`, empty.

    Args:
        definition: The definition.
        reason: Why the table is recomputed.
        gone: Stored tables of the former definition that this one has no use for.
        remade: Whether the state is a new table, as its columns changed.
        by_user: Whether a user gave it, by which nothing is a change; else fuses are asked before it is loaded.
    """

    definition: Definition
    reason: FullReason = FullReason.DEFINITION_CHANGED
    gone: tuple[TableName, ...] = ()
    remade: bool = False
    by_user: bool = False

    @property
    def stored(self) -> tuple[TableName, ...]:
        """Return the tables that it is stored in."""
        parts = (self.definition.name, self.definition.companion, self.definition.log)
        return tuple(table for table in parts if table is not None)


Redefinitions = Mapping[TableName, Redefinition]
Redefine = Callable[[Held, Callable[[TableName], None]], Redefinitions]
"""Makes new definitions of a group's members under their leases; tells whom it is about to define."""

NO_REDEFINITIONS: Redefinitions = {}
