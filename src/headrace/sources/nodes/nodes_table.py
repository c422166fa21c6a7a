"""A mirror's part of a landing from several nodes.

Where a column says of which node each row is, the nodes' rows are disjoint. Each node's change is then computed against
its own rows of the mirror, so that a TRUNCATE, a new snapshot or a delete by key touches no others, and the change of
the mirror is the sum of the nodes' changes. A row that moved from one node to another is −old, +new: an update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.algebra.schema import Column, no_rows_sql
from headrace.lake.compare import consolidate
from headrace.lake.tables import string_literal
from headrace.names import WEIGHT, TableName, quote
from headrace.sources.capture import Json, LandedTable


@dataclass(frozen=True, slots=True)
class NodesTable:
    """See `LandedTable`.

    Args:
        parts: The nodes' parts, by node; several only where a column tells them apart, and all are `replaced` or none.
        column: The column that says of which node a row is; None: nothing does.
        details: The mirror's details after the landing, of all nodes.
        altered: The details differ from those before.
        renamed: Columns that have a new name.
    """

    parts: Mapping[str, LandedTable]
    column: str | None
    details: Json
    altered: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> TableName:
        """Return the mirror."""
        return self._first.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the mirror's columns from now on."""
        own = self._first.columns
        return own if self.column is None else (*own, Column(self.column, "string"))

    @property
    def key(self) -> tuple[str, ...] | None:
        """Return the columns that identify rows."""
        own = self._first.key
        return own if own is None or self.column is None else (*own, self.column)

    @property
    def replaced(self) -> bool:
        """Return whether this is a whole new state of these nodes' rows."""
        return self._first.replaced

    @property
    def reshaped(self) -> bool:
        """Return whether the mirror's columns or details change while its rows stay."""
        return not self.replaced and (self.altered or any(part.reshaped for part in self.parts.values()))

    @property
    def few(self) -> bool:
        """Return whether the change has few rows."""
        return all(part.few for part in self.parts.values())

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders that its queries read."""
        return tuple(folder for part in self.parts.values() for folder in part.folders)

    def rows_sql(self) -> str:
        """Query of the new state's rows."""
        return " UNION ALL ".join(self._tagged(node, part.rows_sql()) for node, part in self.parts.items())

    def change_sql(self, before: str, *, small: bool = False) -> str:
        """Query of the change."""
        changes = []
        for node, part in self.parts.items():
            own = before if self.column is None else self._own(node, before)
            changes.append(self._tagged(node, part.change_sql(own, small=small), WEIGHT))
        return " UNION ALL ".join(changes)

    def _own(self, node: str, before: str) -> str:
        """Return the table expression of one node's rows of the mirror."""
        assert self.column is not None, "only then a node's rows are known"
        return f"(SELECT {self._listed} FROM {before} WHERE {quote(self.column)} = {string_literal(node)})"

    def _tagged(self, node: str, query: str, *more: str) -> str:
        """Return a query of a node's rows with the mirror's columns in one order for all nodes."""
        shown = [self._listed, *more]
        if self.column is not None:
            shown.insert(1, f"{string_literal(node)} AS {quote(self.column)}")
        return f"SELECT {', '.join(shown)} FROM ({query})"

    @property
    def _listed(self) -> str:
        return ", ".join(quote(c.name) for c in self._first.columns)

    @property
    def _first(self) -> LandedTable:
        return next(iter(self.parts.values()))


@dataclass(frozen=True, slots=True)
class Unread:
    """A node's part that no capture read: its rows stay, or all of them go. See `LandedTable`.

    Args:
        name: The mirror.
        columns: Its columns, without the one that tells nodes apart.
        key: The columns that identify rows on one node.
        emptied: The node's rows go, as it is taken out of the source.
    """

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    emptied: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    replaced: bool = False
    reshaped: bool = False
    few: bool = False
    folders: tuple[str, ...] = ()

    def rows_sql(self) -> str:
        """Query of no rows."""
        return no_rows_sql(self.columns)

    def change_sql(self, before: str, *, small: bool = False) -> str:
        """Query of the change: all rows, or none."""
        names = ", ".join(quote(c.name) for c in self.columns)
        everything = f"SELECT {names}, -1L AS {WEIGHT} FROM {before}"
        if not self.emptied:
            return f"{everything} WHERE false"
        return everything if self.key else consolidate(everything, self.columns, apart=True)


def together(
    parts: Mapping[str, Sequence[LandedTable]], column: str | None, details: Json, *, altered: bool
) -> list[NodesTable]:
    """Join the nodes' parts of a mirror, in the order in which they are applied.

    Args:
        parts: By node, in the order in which that one's are applied.
        column: The column that tells nodes apart; None: every part is applied by itself, node after node.
        details: The mirror's details.
        altered: They differ from those before.
    """
    if column is None:
        return [
            NodesTable({node: part}, None, details, altered, part.renamed) for node, of in parts.items() for part in of
        ]
    joined: list[NodesTable] = []
    renamed = _renamed([part for of in parts.values() for part in of])
    rounds = max(map(len, parts.values()))
    for number in range(rounds):
        of_round = {node: of[number] for node, of in parts.items() if number < len(of)}
        for replaced in (True, False):
            alike = {node: part for node, part in of_round.items() if part.replaced is replaced}
            if alike:
                joined.append(NodesTable(alike, column, details, altered, renamed))
    return joined


def _renamed(parts: Sequence[LandedTable]) -> Mapping[str, str]:
    """Return columns that have a new name on the nodes whose rows stay, if there are any."""
    staying = [part for part in parts if part.reshaped]
    return {old: new for part in staying or parts for old, new in part.renamed.items()}
